"""A real Kafka and a real Airflow on this machine, for the demo and the tests."""
