"""Stores of bytes by key, the layout of a run store, and the formats of its files."""
