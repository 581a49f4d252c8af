"""Repro scripts for graphs that a device refuses (constraint violations)."""
