"""What programs read: a report as JSON, and metrics."""
