"""Desired state written from a cluster, as a person would write it."""
