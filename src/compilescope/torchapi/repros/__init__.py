"""Graphs on their way into repro scripts, and the failing compilations that they come from."""
