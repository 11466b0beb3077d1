"""What decides: SQL that an operator can read, and the two engines that run it."""
