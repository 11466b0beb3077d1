"""The undocumented names of kafka-python that quota-ops uses; another version may change them.

Only this module imports them; tests/unit/test_kafka_python.py tests what quota-ops relies on.
"""

from kafka.net.compat import (
    KafkaNetClient,
)
from kafka.net.inet import (
    KafkaNetSocket,
)
from kafka.net.sasl.oauth import (
    AbstractTokenProvider,
)
from kafka.protocol.admin import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ACLResourceType,
    AlterClientQuotasResponse,
    DescribeAclsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
    DescribeUserScramCredentialsRequest,
)
from kafka.protocol.admin.client_quotas import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    MetadataRequest,
)

__all__ = [
    "ACLOperation",
    "ACLPermissionType",
    "ACLResourcePatternType",
    "ACLResourceType",
    "AbstractTokenProvider",
    "AlterClientQuotasRequest",
    "AlterClientQuotasResponse",
    "ApiVersionsRequest",
    "DescribeAclsRequest",
    "DescribeClientQuotasRequest",
    "DescribeClusterRequest",
    "DescribeConfigsRequest",
    "DescribeQuorumRequest",
    "DescribeUserScramCredentialsRequest",
    "KafkaNetClient",
    "KafkaNetSocket",
    "MetadataRequest",
]
