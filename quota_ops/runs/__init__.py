"""Run the stages: runs, the chain of stages, approvals, one-off changes and rollbacks."""
