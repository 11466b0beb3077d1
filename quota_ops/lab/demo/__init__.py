"""The demo: a real Kafka and a real Airflow, and a month in the life of a cluster's quotas."""
