"""The command line: one `*_command.py` per verb; each parses, calls one function and prints."""
