"""Graphs taken apart and given to a backend part by part, with the values of a real run."""
