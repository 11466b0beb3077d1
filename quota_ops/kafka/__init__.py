"""The cluster: connections, and describe, validate and apply over the Kafka protocol."""
