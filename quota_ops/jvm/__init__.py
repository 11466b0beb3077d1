"""Java on this machine: where it is, pinned jars, and archives of classes for quick starts."""
