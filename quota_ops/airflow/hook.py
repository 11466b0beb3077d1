"""The hooks of the connection types: what the button Test of their forms runs."""

from datetime import UTC, datetime

from airflow.sdk import BaseHook

from quota_ops.airflow.connection import PROMETHEUS, read_connection, read_prometheus
from quota_ops.kafka import connection as kafka
from quota_ops.model.errors import QuotaOpsError
from quota_ops.model.text import counted
from quota_ops.usage.connection import PrometheusConnection


class QuotaOpsHook(BaseHook):
    """A Kafka cluster whose quotas are managed; tasks read the same connection without it."""

    conn_name_attr = "quota_ops_conn_id"
    default_conn_name = "quota_ops_default"
    conn_type = "quota_ops"
    hook_name = "quota-ops (Kafka cluster)"

    def __init__(self, quota_ops_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.quota_ops_conn_id = quota_ops_conn_id

    def get_conn(self) -> kafka.Connection:
        """Return the settings of the connection. Raises InvalidInput for a wrong one."""
        found = self.get_connection(self.quota_ops_conn_id)
        # Airflow tests a connection under a random name.
        return read_connection(found, name="of this form", source="this connection")

    def test_connection(self) -> tuple[bool, str]:
        """Ping the cluster as `quota-ops ping` does; return whether all is well, and what is not.

        Takes at most ten seconds, on the machine where Airflow runs the test.
        """
        from quota_ops.kafka.ping import ping
        from quota_ops.report.screens.ping import list_sentences

        try:
            pinged = ping(self.get_conn(), policy=None)
        except QuotaOpsError as error:
            return False, " ".join(str(error).split())
        return pinged.exit_code == 0, " ".join(list_sentences(pinged))


class PrometheusHook(BaseHook):
    """A Prometheus that measures what clients use; tasks read the same connection without it."""

    conn_name_attr = "quota_ops_prometheus_conn_id"
    default_conn_name = "quota_ops_prometheus_default"
    conn_type = PROMETHEUS
    hook_name = "quota-ops (Prometheus)"

    def __init__(self, quota_ops_prometheus_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.quota_ops_prometheus_conn_id = quota_ops_prometheus_conn_id

    def get_conn(self) -> PrometheusConnection:
        """Return the settings of the connection. Raises InvalidInput for a wrong one."""
        found = self.get_connection(self.quota_ops_prometheus_conn_id)
        return read_prometheus(found, name="of this connection", source="this connection")

    def test_connection(self) -> tuple[bool, str]:
        """Query how many targets were scraped; return whether it responds, and a message."""
        from quota_ops.usage.prometheus import open_prometheus

        try:
            with open_prometheus(self.get_conn()) as server:
                found = server.query("count(up)", datetime.now(UTC))
        except QuotaOpsError as error:
            return False, " ".join(str(error).split())
        scraped = int(float(found[0].value.value)) if found and found[0].value else 0
        return True, f"The server responds, and scrapes {counted(scraped, 'target')}."
