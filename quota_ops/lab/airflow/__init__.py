"""A real Airflow on this machine."""
