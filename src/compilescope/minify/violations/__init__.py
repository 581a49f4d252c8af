"""Graphs that a device refuses: what a violation is known by, and its repro scripts."""
