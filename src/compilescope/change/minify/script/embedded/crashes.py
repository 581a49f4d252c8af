# mypy: ignore-errors
"""The sign by which a crash is recognised in a smaller program: no line numbers, no sizes."""

import os
import re
import traceback


def innermost(error):
    """The cause at the bottom: what torch wraps, and what it was handling."""
    seen = set()
    while id(error) not in seen:
        seen.add(id(error))
        kind = type(error)
        below = getattr(error, "inner_exception", None) or error.__cause__
        # Torch hides what it was handling. A graph break has its own words, and is the cause.
        if below is None and kind.__module__.startswith("torch") and kind.__name__ != "Unsupported":
            below = error.__context__
        error = below if isinstance(below, BaseException) else error
    return error


def crash_sign(error):
    """Its class; then class and words of its innermost cause, and torch's function that raised."""
    inner = innermost(error)
    lines = [line.strip() for line in str(inner).splitlines() if line.strip()] or [""]
    words = lines[0]
    if lines[1:] and lines[1].startswith("Explanation:"):
        # Up to the first thing that depends on the program.
        end = r"[<\[{(]|0x|\bwith argument types\b|\b[usz]?\d|'/"
        words += ": " + re.split(end, lines[1][len("Explanation:") :])[0]
    words = re.sub(r"0x[0-9a-f]+|\b(z?[us]f?)?\d+(x\d+)*(\.\d+)?(e[-+]?\d+)?\b", "", words)
    words = re.sub(r"[\s,]+(?=[\s,\])])|(?<=[\[(])[\s,]+", "", words).strip()[:300]
    frames = traceback.extract_tb(inner.__traceback__)
    where = ""
    if frames and "-packages" in frames[-1].filename:
        where = f"{os.path.basename(frames[-1].filename)} in {frames[-1].name}"
    return type(error).__name__, type(inner).__name__, words, where
