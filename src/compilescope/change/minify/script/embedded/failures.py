# mypy: ignore-errors
"""The sign by which a compilation's error is recognised, whatever the graph's shapes and names."""

import os
import re
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


def find_failure(expected, eager, compiled):
    """Does it end with the expected error?"""
    try:
        eager()
    except Exception:
        traceback.print_exc()
        return None, "it also fails without torch.compile."
    try:
        compiled()
    except Exception as error:
        found = fingerprint(error)
        traceback.print_exc()
        if found == expected:
            return True, "see the error above."
        return None, f"a different error, {found}, not {expected}."
    return False, "it compiled and ran."
