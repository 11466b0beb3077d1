"""The screens of commands; the module has the name of its command."""
