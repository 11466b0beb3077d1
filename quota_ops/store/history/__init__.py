"""What happened on each day: the ends of runs, and the use of clients."""
