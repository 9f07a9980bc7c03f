"""The command line. `main.py` finds the command; each other file is one group of commands, or what the groups share."""
