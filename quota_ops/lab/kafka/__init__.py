"""A real Kafka on this machine."""
