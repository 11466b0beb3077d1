"""What stores bytes by key, what a run store has where, and the forms of what is stored."""
