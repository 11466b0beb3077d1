"""One connection to a broker: its socket, TLS, tokens and deadlines."""
