"""Portable graphs by themselves: completed, placed in the user's source, counted. Needs no run."""
