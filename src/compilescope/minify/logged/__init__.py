"""Scripts for what a log tells of: repros of its breaks, and the program with what helps."""
