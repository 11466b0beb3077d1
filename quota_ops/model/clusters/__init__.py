"""What brokers report about themselves."""
