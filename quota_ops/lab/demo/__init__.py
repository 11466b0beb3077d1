"""The demo: a real Kafka and a real Airflow, and a month of changes to a cluster's quotas."""
