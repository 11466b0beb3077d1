"""The use of a cluster's clients, as a Prometheus recorded it: read only, by its HTTP API.

Everything that speaks that API works: Prometheus, Thanos, Mimir, VictoriaMetrics and services.
"""
