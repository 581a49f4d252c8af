"""Compares a model's numbers on two backends, and names the operations that are wrong."""
