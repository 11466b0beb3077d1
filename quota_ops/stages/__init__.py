"""The eight stages: each reads artifacts from a run folder and leaves its own there."""
