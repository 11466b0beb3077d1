"""The eight stages; each reads artefacts of a run folder and leaves its own there."""
