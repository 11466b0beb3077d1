# before: 5. Start
# What Airflow reads of the variables on the page.
export AIRFLOW__LOGGING__LOGGING_LEVEL=ERROR
python - <<end
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.sdk import BaseHook
from quota_ops.airflow.connection import find_connection

found = find_connection("demo")
assert found.properties["bootstrap.servers"] == "kafka-1.example:9094,kafka-2.example:9094"
assert found.principal == "User:svc-quota"
assert found.protocol == "sasl_ssl"
assert BaseHook.get_connection("quotas_git").login == "svc-quota"
assert DagBundlesManager().get_bundle("quotas").tracking_ref == "main"
end
