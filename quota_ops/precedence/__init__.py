"""The limit that applies to a client: the eight levels, in the order of a broker's lookup."""
