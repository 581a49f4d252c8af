"""What sees torch at work: hooks, the recorder, and how they get into a program."""
