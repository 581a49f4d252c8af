"""What a device asks of a graph, and where a graph does not meet it. Pure: no torch."""
