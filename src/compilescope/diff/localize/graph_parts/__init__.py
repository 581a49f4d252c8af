"""Graphs cut into parts, and parts run with the values of a real run."""
