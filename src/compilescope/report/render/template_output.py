"""The functions that the generated templates in `drawn` print with; output is equal to Jinja's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from markupsafe import Markup, escape

from compilescope.base.texts import visible
from compilescope.report.render.safe_html import finalize


class Loop(msgspec.Struct, frozen=True):
    """What a template may ask of its loop, as Jinja's `loop`."""

    index0: int
    amount: int

    @property
    def index(self) -> int:
        return self.index0 + 1

    @property
    def first(self) -> bool:
        return self.index0 == 0

    @property
    def last(self) -> bool:
        return self.index == self.amount


def printed(value: Any) -> str:
    """Made visible and escaped, but for what is marked as HTML."""
    return escape(visible(value) if type(value) is str else finalize(value))


def loops(values: Iterable[Any]) -> Iterator[tuple[Loop, Any]]:
    """Each value with its place."""
    known: Sequence[Any] = values if isinstance(values, (tuple, list)) else list(values)
    amount = len(known)
    return ((Loop(number, amount), value) for number, value in enumerate(known))


def concat(*values: Any) -> str:
    """As `~`: one that is HTML makes all the others HTML."""
    if any(isinstance(value, Markup) for value in values):
        return Markup("").join(values)
    return "".join(map(str, values))


def join(values: Iterable[Any], between: str) -> str:
    return between.join(map(str, values))
