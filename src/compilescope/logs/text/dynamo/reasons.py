"""Why a graph ends where it does: the repr of torch's `GraphCompileReason`, on one line."""

from __future__ import annotations

import re
from typing import NamedTuple

from compilescope.logs.text.dynamo.origins import recast
from compilescope.logs.words.tracebacks import make_frame
from compilescope.model.python_text import read_literal
from compilescope.model.stack import Frame

_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_REASON = re.compile(
    rf"GraphCompileReason\(reason=(?P<reason>{_STRING}), user_stack=\[(?P<stack>[^\[\]]*)\]"
    r"(?:, graph_break=(?P<broken>True|False))?\)",
    re.S,
)
_SUMMARY = re.compile(
    r"<FrameSummary file (?P<file>[^<>\n]{1,1000}?), line (?P<line>\d{1,9}) in "
    r"(?P<name><\w+>|[^<>\n]{1,300})>(?=, <|$)"
)


class CompileReason(NamedTuple):
    """Why Dynamo stopped tracing and compiled what it had."""

    reason: str
    stack: tuple[Frame, ...]
    broken: bool | None
    """A graph break, and not the function's end."""


def read_reason(text: str) -> CompileReason | None:
    found = _REASON.search(text)
    if found is None:
        return None
    try:
        reason = str(read_literal(found["reason"]))
    except ValueError:
        reason = found["reason"][1:-1]
    frames = [
        make_frame(summary["file"], int(summary["line"]), summary["name"])
        for summary in _SUMMARY.finditer(found["stack"])
    ]
    broken = None if found["broken"] is None else found["broken"] == "True"
    return CompileReason(reason, recast(frames), broken)
