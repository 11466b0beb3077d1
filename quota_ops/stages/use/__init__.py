"""Use beside limits: of recorded days, and of the time that a Prometheus knows."""
