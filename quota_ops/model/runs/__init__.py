"""Runs: their steps, their results, and how to roll one back."""
