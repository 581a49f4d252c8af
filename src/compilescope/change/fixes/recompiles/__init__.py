"""Fixes for recompiles: one file each."""
