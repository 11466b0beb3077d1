"""Which limit applies to a client: the eight levels, in the order in which a broker looks."""
