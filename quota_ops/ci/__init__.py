"""The CI platform: the branch that it checks out, and where a job puts its reports."""
