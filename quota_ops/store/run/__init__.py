"""One run: its folder, its files, its state, its number, and who writes it."""
