"""The eight stages: each reads artefacts from a run folder and leaves its own there."""
