"""The commands: each in a module that has its name."""
