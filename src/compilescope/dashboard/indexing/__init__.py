"""What the index of runs is made of: entries, their cache on disk, the process that reads runs."""
