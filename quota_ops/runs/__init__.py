"""What drives stages: a run, the chain, approvals, one-off changes, rollbacks."""
