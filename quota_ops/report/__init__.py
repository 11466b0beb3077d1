"""Screens, reports and pages: pure functions from values to text, without any file access."""
