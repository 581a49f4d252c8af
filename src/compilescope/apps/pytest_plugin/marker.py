"""What `@pytest.mark.compile_limits(...)` asks for, and what is wrong with it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

import pytest

from compilescope.base.errors import ToolError
from compilescope.knowledge.analysis.gate.verdict import NOTHING_LOST, GateLimits, complete

NAME = "compile_limits"


@dataclass(frozen=True)
class TestLimits:
    """The limits of one test."""

    limits: GateLimits = NOTHING_LOST
    own: bool = False
    """Only causes in the user's own files count."""
    fresh: bool = True
    """Forget what earlier tests compiled before this one begins."""
    allow_nothing: bool = False
    """A test in which nothing is compiled is within its limits."""

    __test__ = False  # Not a test, whatever pytest thinks of its name.


_NUMBERS = tuple(name for name in GateLimits.__struct_fields__ if name != "slowdown")
"""A test is no benchmark."""
_FLAGS = ("own", "fresh", "allow_nothing")


def read_marker(item: pytest.Item) -> TestLimits | None:
    """The limits of the closest marker; ToolError where it makes no sense."""
    mark = item.get_closest_marker(NAME)
    if mark is None:
        return None
    if mark.args:
        raise _wrong(item, "it takes limits by keyword, as in compile_limits(breaks=0).")
    limits: dict[str, Any] = {}
    flags: dict[str, bool] = {}
    for name, value in mark.kwargs.items():
        if name in _FLAGS:
            if not isinstance(value, bool):
                raise _wrong(item, f"{name} must be True or False, not {_shown(value)}.")
            flags[name] = value
        elif name in _NUMBERS:
            limits[name] = _number(item, name, value)
        else:
            raise _wrong(item, f"there is no {name!r}. {_instead(name)}")
    return TestLimits(complete(GateLimits(**limits)), **flags)


def _number(item: pytest.Item, name: str, value: object) -> int | float | None:
    if value is None:
        return None  # Not looked at, as in [tool.compilescope].
    percent = name == "coverage"
    kinds = (int, float) if percent else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds):
        kind = "percentage" if percent else "whole number"
        raise _wrong(item, f"{name} must be a {kind}, not {_shown(value)}.")
    if not 0 <= value <= (100 if percent else float("inf")):
        what = "between 0 and 100" if percent else "0 or more"
        raise _wrong(item, f"{name} must be {what}, not {_shown(value)}.")
    return value


def _instead(name: str) -> str:
    names = (*_NUMBERS, *_FLAGS)
    close = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Use one of {', '.join(names)}."


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _wrong(item: pytest.Item, what: str) -> ToolError:
    return ToolError(f"{item.nodeid}: the marker {NAME}: {what}")
