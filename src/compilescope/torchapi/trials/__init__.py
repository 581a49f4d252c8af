"""Runs of a model that are held against one another: watched, widened to float64, or compiled."""
