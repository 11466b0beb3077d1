"""Seconds of wall time that tests allow."""

PROMPTLY = 20.0
"""What is promised within five, on a slow machine with other work; what hangs takes 30 or more."""
