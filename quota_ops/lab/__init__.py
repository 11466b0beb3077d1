"""A real Kafka, Spark and Airflow on this machine, for the demo and the tests."""
