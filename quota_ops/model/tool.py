"""The other tools whose files `import` reads."""

from enum import StrEnum


class Tool(StrEnum):
    """A tool whose files have quotas."""

    STRIMZI = "strimzi"
    """Manifests of KafkaUser."""
    JIKKOU = "jikkou"
    """Resources KafkaClientQuota."""
    TERRAFORM = "terraform"
    """The state of the provider Mongey/kafka, as `terraform state pull` prints it."""
    KAFKA_CONFIGS = "kafka-configs"
    """The output of `kafka-configs.sh --describe`."""
