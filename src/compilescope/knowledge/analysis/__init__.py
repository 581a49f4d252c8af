"""A run as views need it: digest, tree, timeline, stages, gate, comparisons. Pure: no torch."""
