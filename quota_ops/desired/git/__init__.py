"""The Git checkout of the desired state: its commits, branches, and merges."""
