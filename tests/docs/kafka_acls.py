"""kafka-acls.sh as far as the documentation uses it: Kafka's is in no jar of the tests.

The options are that tool's; what it grants is granted on the real broker.
"""

import argparse
from pathlib import Path

from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
)

OPERATIONS = {
    "AlterConfigs": ACLOperation.ALTER_CONFIGS,
    "Describe": ACLOperation.DESCRIBE,
    "DescribeConfigs": ACLOperation.DESCRIBE_CONFIGS,
}


def main() -> None:
    """Grant operations on the resource Cluster."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--command-config", required=True, type=Path)
    parser.add_argument("--add", required=True, action="store_true")
    parser.add_argument("--allow-principal", required=True)
    parser.add_argument("--operation", required=True, action="append", choices=OPERATIONS)
    parser.add_argument("--cluster", required=True, action="store_true")
    given = parser.parse_args()
    login = dict(
        line.split("=", maxsplit=1) for line in given.command_config.read_text().splitlines()
    )
    admin = KafkaAdminClient(
        bootstrap_servers=given.bootstrap_server,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username=login["sasl.username"],
        sasl_plain_password=login["sasl.password"],
    )
    cluster = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")
    granted = [
        ACL(given.allow_principal, "*", OPERATIONS[name], ACLPermissionType.ALLOW, cluster)
        for name in given.operation
    ]
    if failed := admin.create_acls(granted)["failed"]:
        raise SystemExit(str(failed))
    admin.close()


if __name__ == "__main__":
    main()
