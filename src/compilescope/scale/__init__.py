"""Many programs at once: sweeps, and their jobs over local processes or Ray."""
