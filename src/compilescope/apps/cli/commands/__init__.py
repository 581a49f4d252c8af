"""One file or folder for each command, named as the command; each has a `COMMAND`."""
