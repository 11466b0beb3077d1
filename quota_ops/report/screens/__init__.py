"""The screens of commands; the module has the name of its command, or of what the screen shows."""
