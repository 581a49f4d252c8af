"""Runs of a model that are compared: watched, in float64, with other roundings, or compiled."""
