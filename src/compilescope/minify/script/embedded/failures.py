# ruff: noqa: T201
# mypy: ignore-errors
"""What an error is known by, whatever the shapes and names of the graph at hand."""

import os
import re
import sys
import traceback


def fingerprint(error):
    """Class, words without numbers and names, and the function that raised it."""
    seen = set()
    while id(error) not in seen:
        seen.add(id(error))
        inner = getattr(error, "inner_exception", None) or error.__cause__
        error = inner if isinstance(inner, BaseException) else error
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    words = re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?(e[-+]?\d+)?", "#", lines[0].strip())
    words = re.sub(r"_#|#(, #)+|#( x #)+", "#", words)
    # `add_3` and `add`, `[4, 8]` and `[4]` say the same.
    words = re.sub(r"#+", "#", words).replace("#", "")[:300]
    frames = traceback.extract_tb(error.__traceback__)
    where = frames[-1].name if frames else ""
    # Code of one's own is in another file here than it was in the program.
    if frames and "-packages" in frames[-1].filename:
        where = f"{os.path.basename(frames[-1].filename)} in {where}"
    return type(error).__name__, words, where


def report_failure(expected, eager, compiled):
    """The exit status: 1 for the expected error, 0 for none, 2 for anything else."""
    try:
        eager()
    except Exception:
        traceback.print_exc()
        print("Inconclusive: it also fails without torch.compile.", file=sys.stderr)
        return 2
    try:
        compiled()
    except Exception as error:
        found = fingerprint(error)
        traceback.print_exc()
        if found == expected:
            print("The bug is present: see the error above.", file=sys.stderr)
            return 1
        print(f"Inconclusive: a different error, {found}, not {expected}.", file=sys.stderr)
        return 2
    print("The bug is fixed: it compiled and ran.")
    return 0
