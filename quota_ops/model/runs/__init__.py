"""Runs: what one does, what comes of it, and how it can be rolled back."""
