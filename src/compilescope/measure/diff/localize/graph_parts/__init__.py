"""Cuts a graph into parts, and runs a part with the values that it has in the whole program."""
