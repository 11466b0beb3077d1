"""The CI platform: the branch that it checks out, and where a job leaves what people read."""
