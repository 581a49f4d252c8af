"""The parts of a graph that a device takes: found, cut out, run, counted."""
