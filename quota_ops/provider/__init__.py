"""What Airflow reads about quota-ops in every process: the connection type and its form.

It imports nothing, so that an Airflow with other DAGs does not load the rest of quota-ops.
"""

from typing import Any

PAGES = "/quota-ops"
"""Where Airflow's web server shows the reports of DAG runs, below its address."""
_TEXT = ["string", "null"]


def get_provider_info() -> dict[str, Any]:
    """Return quota-ops as an Airflow provider; Airflow finds this function by its entry point."""
    return {
        "package-name": "quota-ops",
        "name": "quota-ops",
        "description": "Manage Apache Kafka client quotas from Git.",
        "connection-types": [
            {
                "connection-type": "quota_ops",
                "hook-class-name": "quota_ops.airflow.connection.QuotaOpsHook",
                "hook-name": "quota-ops (Kafka cluster)",
                "ui-field-behaviour": {
                    "hidden-fields": ["schema"],
                    "relabeling": {
                        "host": "Bootstrap servers",
                        "port": "Port, if they name none",
                        "login": "User or client id",
                        "password": "Password or client secret",
                    },
                    "placeholders": {"host": "kafka-1,kafka-2", "port": "9094"},
                },
                "conn-fields": _FIELDS,
            },
            {
                "connection-type": "quota_ops_prometheus",
                "hook-class-name": "quota_ops.airflow.connection.PrometheusHook",
                "hook-name": "quota-ops (Prometheus)",
                "ui-field-behaviour": {
                    "hidden-fields": [],
                    "relabeling": {"schema": "http or https"},
                    "placeholders": {"host": "prometheus.example", "schema": "https"},
                },
                "conn-fields": _PROMETHEUS_FIELDS,
            },
        ],
    }


_FIELDS: dict[str, dict[str, Any]] = {
    "security.protocol": {
        "label": "Security protocol",
        "description": "Without it: plaintext.",
        "schema": {"type": _TEXT, "enum": ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl", None]},
    },
    "sasl.mechanism": {
        "label": "SASL mechanism",
        "description": "Required with sasl_plaintext and sasl_ssl.",
        "schema": {
            "type": _TEXT,
            "enum": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", None],
        },
    },
    "ssl.ca.location": {
        "label": "CA file",
        "description": "A PEM file on every worker. Without it: the authorities of the machine.",
        "schema": {"type": _TEXT},
    },
    "ssl.ca.pem": {
        "label": "CA certificates",
        "description": "Their PEM text, instead of a file.",
        "schema": {"type": _TEXT, "format": "multiline"},
    },
    "ssl.certificate.location": {
        "label": "Client certificate file",
        "description": "A PEM file on every worker.",
        "schema": {"type": _TEXT},
    },
    "ssl.key.location": {
        "label": "Client key file",
        "description": "A PEM file on every worker.",
        "schema": {"type": _TEXT},
    },
    "ssl.key.password": {
        "label": "Password of the client key",
        "schema": {"type": _TEXT, "format": "password"},
    },
    "sasl.oauthbearer.token.endpoint.url": {
        "label": "OAuth token endpoint",
        "description": "Required with OAUTHBEARER, for example https://login.example/oauth2/token.",
        "schema": {"type": _TEXT},
    },
    "sasl.oauthbearer.scope": {"label": "OAuth scope", "schema": {"type": _TEXT}},
}
"""The fields of the form: settings of a connection by librdkafka's names, kept in `extra`."""
_PROMETHEUS_FIELDS: dict[str, dict[str, Any]] = {
    "url": {
        "label": "URL",
        "description": "In place of host, schema and port, if the API is below a path.",
        "schema": {"type": _TEXT},
    },
    "bearer.token": {"label": "Token", "schema": {"type": _TEXT, "format": "password"}},
    "tenant": {"label": "Tenant", "schema": {"type": _TEXT}},
    "tenant.header": {
        "label": "Header of the tenant",
        "description": "Without it: X-Scope-OrgID.",
        "schema": {"type": _TEXT},
    },
    "ssl.ca.location": _FIELDS["ssl.ca.location"],
}
"""The fields of the form of a Prometheus, likewise."""
