"""How often a loop goes round, and how long a round takes: each way to it by itself, since a
library's one loop may train, and evaluate.
"""

from __future__ import annotations

import os
import statistics
import zlib
from collections import deque
from types import FrameType
from typing import Any

import torch

from compilescope.base.package import PACKAGE
from compilescope.record.stack import plain_function_name

_NOT_THE_PROGRAM = (os.path.dirname(torch.__file__) + os.sep, PACKAGE + os.sep)
_MOST_TIMED = 64
"""Rounds of a place, the last ones. Chosen: enough for a median."""


def way_to(frame: FrameType) -> int:
    """The functions that lead there, as a number that is the same in each process. Above 0."""
    names: list[str] = []
    here: FrameType | None = frame
    while here is not None:
        code = here.f_code
        if not code.co_filename.startswith(_NOT_THE_PROGRAM):
            name = plain_function_name(code.co_name)
            names += [name] if names[-1:] != [name] else []  # What goes on after a break is one.
        here = here.f_back
    return zlib.crc32("/".join(names).encode()) or 1


class _CountedWay:
    """Rounds of a place that are come to by one way."""

    def __init__(self) -> None:
        self.rounds = 0
        self.facts: dict[str, Any] = {}
        self._last: tuple[int, float] | None = None
        """The number of compilations by then, and when it was."""
        self._ms: deque[float] = deque(maxlen=_MOST_TIMED)

    def pass_by(self, compilations: int, now: float) -> None:
        self.rounds += 1
        if self._last is not None and self._last[0] == compilations:
            self._ms.append((now - self._last[1]) * 1000)
        self._last = compilations, now

    @property
    def ms(self) -> float:
        """How long a round usually took."""
        return statistics.median(self._ms) if self._ms else 0.0


class CountedPlace:
    """A place that is counted, each way to it by itself."""

    def __init__(self) -> None:
        self._ways: dict[int, _CountedWay] = {}

    def pass_by(self, frame: FrameType, compilations: int, now: float) -> _CountedWay:
        way = self._ways.setdefault(way_to(frame), _CountedWay())
        way.pass_by(compilations, now)
        return way

    def _most(self) -> tuple[int, _CountedWay]:
        """The way on which the program spends most."""
        spent = {number: way.rounds * (way.ms or 1.0) for number, way in self._ways.items()}
        number = max(spent, key=lambda each: spent[each], default=0)
        return number, self._ways.get(number, _CountedWay())

    @property
    def told(self) -> tuple[int, float, int]:
        """How often it was passed, how long a round usually took, and the way where there is
        another one."""
        number, way = self._most()
        return way.rounds, way.ms, number if len(self._ways) > 1 else 0

    @property
    def facts(self) -> dict[str, Any]:
        return self._most()[1].facts
