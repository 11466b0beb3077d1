"""Small programs that do the same work as quota-ops, to compare its speed with."""
