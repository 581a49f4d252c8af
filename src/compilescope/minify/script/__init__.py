"""Standalone scripts that show one thing: exit status 1 where it is there, 0 where it is gone."""
