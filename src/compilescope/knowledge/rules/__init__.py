"""The catalogue: patterns of graph breaks, recompiles and hardware constraints, and their words."""
