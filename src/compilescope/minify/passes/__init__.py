"""Ways to make a graph smaller: each file has one, called PASS."""
