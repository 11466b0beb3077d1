"""Output for programs: a report as JSON, and metrics."""
