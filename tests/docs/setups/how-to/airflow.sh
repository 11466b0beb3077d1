# before: The DAG reconcile_CLUSTER
# To check what Airflow reads, on a machine with Airflow.
export AIRFLOW_CONN_QUOTAS_GIT='{"conn_type": "git", "host": "'$PWD'"}' AIRFLOW__LOGGING__LOGGING_LEVEL=ERROR
python - <<end
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.sdk import BaseHook
from quota_ops.airflow.connection import find_connection

found = find_connection("demo")
assert found.properties["bootstrap.servers"] == "kafka-1.example:9094,kafka-2.example:9094"
assert found.principal == "User:svc-quota"
assert found.protocol == "sasl_ssl"
assert BaseHook.get_connection("quota_ops_spark").port == 7077
assert DagBundlesManager().get_bundle("quotas").tracking_ref == "main"
end
