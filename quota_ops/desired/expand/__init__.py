"""Expand what people declare into one limit for each entity and key, at a time."""
