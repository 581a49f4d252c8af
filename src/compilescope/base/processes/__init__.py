"""Child processes: run within limits, their output, who runs, what they leave, how they end.

Nothing is imported here: small commands need a module or two of it, and `guard_process` runs alone.
"""
