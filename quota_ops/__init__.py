"""quota-ops keeps the client quotas of Apache Kafka clusters in Git."""
