"""What clients used, and what follows from it."""
