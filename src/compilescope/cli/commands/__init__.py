"""One command a file. Each carries a COMMAND."""
