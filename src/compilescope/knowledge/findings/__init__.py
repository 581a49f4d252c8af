"""The findings of a run: what went wrong, each cause once, and what it cost.

Graph breaks, recompiles, eager functions, failed compilations, violations of a device's
constraints, differences of numbers. Nothing here explains a cause: `rules` fills in the words.
"""
