"""An exception in one sentence: what, where in the code that raised it, and its fingerprint."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

from compilescope.errors import ToolError
from compilescope.model.fingerprint import fingerprint
from compilescope.model.stack import Frame, origin_of
from compilescope.torchapi.trials.backends import root_error
from compilescope.torchapi.trials.survey import from_here

_LONGEST = 300
"""Letters. Chosen: one sentence of an error; some carry a compiler's whole log."""


def describe_failure(error: BaseException, *, marked: bool = True) -> str:
    """`marked`: with its fingerprint."""
    inner = root_error(error)
    if isinstance(inner, ToolError):
        return inner.message
    said = " ".join(str(inner).split())
    said = said if len(said) <= _LONGEST else said[:_LONGEST] + "..."
    kind = type(inner).__name__
    frame = raising_frame(inner)
    place = (
        f" ({from_here(frame.file)}:{frame.line} in {frame.function})" if frame is not None else ""
    )
    mark = f" [{failure_fingerprint(error)}]" if marked else ""
    return f"{kind}: {said}{place}{mark}" if said else f"{kind}{place}{mark}"


def failure_fingerprint(error: BaseException) -> str:
    """The same for the same failure, whatever the machine and the line number."""
    inner = root_error(error)
    return fingerprint(f"raised-{type(inner).__name__}", raising_frame(inner), os.getcwd())


def raising_frame(error: BaseException) -> Frame | None:
    """The innermost line that is not torch's, nor ours if there is another."""
    frames = [
        Frame(f.filename, f.lineno or 0, f.name, source=f.line or "", origin=origin_of(f.filename))
        for f in traceback.extract_tb(error.__traceback__)
    ]
    ours = os.path.join(str(Path(os.path.abspath(__file__)).parents[2]), "")
    theirs = [f for f in frames if f.origin in ("user", "library") and not f.file.startswith(ours)]
    return theirs[-1] if theirs else None
