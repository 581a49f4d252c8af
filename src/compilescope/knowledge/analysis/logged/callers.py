"""The line of the program that a torch_xla stack is about.

The innermost line of the program is not always the one its author thinks of: a `sync` is often
wrapped in a helper that does nothing else, and what decides how often it runs is the line that
calls the helper. A helper is told by its source where that is kept, else by its name: it syncs, or
it is none of those that do a step's work.
"""

from __future__ import annotations

import ast
import re

from compilescope.base.patterns import late
from compilescope.knowledge.source.spots import Place, Sources
from compilescope.record.stack import Frame

_SYNCS = late(
    r"sync|mark_?step|(?:^|_)(?:end_?step|step_end|step_marker|barrier|flush|finish|wait|cut|"
    r"materiali[sz]e)(?:_|$)",
    re.I,
)
_WORKS = late(
    r"^<|(?:^|_)(?:main|run|fit|loop|step|steps|epoch|epochs|forward|generate|decode|prefill|call|"
    r"train\w*|eval\w*|valid\w*|test\w*|infer\w*|predict\w*|optimi[sz]e\w*|bench\w*|update\w*|"
    r"process\w*|learn\w*|compute\w*|backward|batch|iter\w*)(?:_|$)",
    re.I,
)
_MOST_STATEMENTS = 3
"""Of a function that does no more than sync, with a condition or a message around it. Chosen: with
more it does work of its own, and its line is worth naming."""
_MOST_SHOWN = 4
"""Calls between the program's line and the device. Chosen: a short path, the innermost first to
stay."""
_MODULE_CALLS = ("_call_impl", "_wrapped_call_impl")


def asked_by(
    stack: tuple[Frame, ...], sources: Sources, *, through_helpers: bool
) -> tuple[Frame | None, tuple[Frame, ...]]:
    """The line that asked for something, and what it went through: the program's helpers, and
    libraries between it and torch_xla."""
    ours = [frame for frame in stack if frame.origin in ("user", "library")]
    own = [frame for frame in ours if frame.origin == "user"] or ours
    if not own:
        return None, ()
    at = len(own) - 1
    while through_helpers and at > 0 and _is_helper(own[at], sources):
        at -= 1
    inner = ours[len(ours) - ours[::-1].index(own[at]) :]
    return own[at], tuple(inner[-_MOST_SHOWN:])


def in_module(stack: tuple[Frame, ...]) -> bool:
    """Did a module's `forward` ask for it?"""
    return any(
        frame.function in _MODULE_CALLS and frame.file.endswith("nn/modules/module.py")
        for frame in stack
    ) or any(frame.function == "forward" and frame.origin != "torch" for frame in stack)


def _is_helper(frame: Frame, sources: Sources) -> bool:
    known = _does_little(frame, sources)
    if known is not None:
        return known
    return bool(_SYNCS.search(frame.function)) or not _WORKS.search(frame.function)


def _does_little(frame: Frame, sources: Sources) -> bool | None:
    """By the function's own source; None where that is not kept, or is no function."""
    if not 0 < frame.line <= len(sources.lines(frame.file)):
        return None
    spot = sources.spot(Place(frame.file, frame.line))
    function = spot.function
    if function is None or function.name != frame.function:
        return None
    body = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
    if any(isinstance(node, (ast.For, ast.While, ast.AsyncFor)) for node in body):
        return False
    done = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
    statements = [node for node in body if isinstance(node, done) and not _is_bare(node)]
    return len(statements) <= _MOST_STATEMENTS


def _is_bare(node: ast.stmt) -> bool:
    """A docstring, or a return of nothing."""
    value = getattr(node, "value", None)
    return value is None or isinstance(value, ast.Constant)
