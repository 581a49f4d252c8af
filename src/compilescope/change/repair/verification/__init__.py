"""Anybody's change to a program, judged: what it keeps, what it changes, and what it loses."""
