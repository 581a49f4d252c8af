"""Runs of a model for comparison: observed, in float64, with other roundings, or compiled."""
