"""What a run lost, grouped: graph breaks, recompiles, eager functions, failures, and their cost.

Nothing here explains anything: `rules` does, and fills in the words.
"""
