"""Turns findings into words."""
