"""Quotas: keys, entities, filters, owners, and the rows that stages exchange."""
