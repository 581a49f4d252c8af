"""Many jobs over local processes or a Ray cluster, each ended in exactly one state; no torch."""
