"""What people see: pure functions from values to text; nothing here reads or writes a file."""
