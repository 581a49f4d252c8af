"""Versions of a program, run in fresh processes and compared."""
