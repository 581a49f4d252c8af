"""What the judge is tested with: programs, mutants of them, and rewrites that change nothing."""
