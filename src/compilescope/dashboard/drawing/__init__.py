"""Pages of runs, drawn in worker processes: the workers, and what they draw."""
