"""Ways to make a graph smaller: each file has one, called `PASS`, or a family, `PASSES`.

A pass only proposes. Whether the smaller graph still shows the problem is tried each time, so a
proposal may change what the graph computes.
"""
