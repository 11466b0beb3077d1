"""Desired state: the YAML that people write, read into rows with their places."""
