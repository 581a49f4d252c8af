"""The gate: is what a run lost within the limits, and is any of it new?"""
