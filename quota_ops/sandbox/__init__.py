"""A real Apache Kafka on this machine, for the demo and the tests."""
