"""Times: phases of compilations, calls of compiled code, and profiled steps."""
