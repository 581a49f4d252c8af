"""Child processes: run within limits, asked and answering, their output, who runs, what they leave,
how they end.

Nothing is imported here: small commands need a module or two of it, and
`cleaner_process` runs alone.
"""
