"""Where the time of a step goes: the record of torch's profiler, taken apart. Pure; no torch."""
