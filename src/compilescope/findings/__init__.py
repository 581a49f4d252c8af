"""What a run found out, each cause once: graph breaks, recompiles, eager functions, failures,
violations of a device's constraints, differences of numbers; and what causes cost.

Nothing here explains anything: `rules` does, and fills in the words.
"""
