"""How long a search may take, by the clock; a part of it is kept for the proof of the whole."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from compilescope.errors import ToolError
from compilescope.repair.trials.workbench import Workbench

SPENT = "not tried: the time budget ran out"
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_TOGETHER = 4
"""Processes that it takes to see whether fixes go together, and hold as a whole."""
_ROOM = 1.3


def read_budget(text: str) -> float:
    """Seconds of `90`, `90s`, `2m`, `1.5h`, `1h30m`."""
    pieces = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    written = "".join(number + unit for number, unit in pieces)
    right = written == re.sub(r"\s", "", text.lower()) and all(u in _UNITS for _, u in pieces)
    seconds = sum(float(number) * _UNITS.get(unit, 0.0) for number, unit in pieces)
    if not right or not seconds:
        raise ToolError(f"{text} is not a duration.", hint="Use --budget 90s, 2m or 1h.")
    return seconds


class Budget:
    """From the moment that it is made. What is over time raises `OutOfTime`."""

    def __init__(self, seconds: float | None, bench: Workbench) -> None:
        self.seconds = seconds
        self._bench = bench
        self._end = None if seconds is None else time.monotonic() + seconds
        bench.deadline = self._end

    @property
    def is_spent(self) -> bool:
        """Is there no more time than is needed to hand out what there is?"""
        return self._end is not None and time.monotonic() >= self._end - self._reserve(_TOGETHER)

    def searching(self) -> AbstractContextManager[None]:
        """What runs within the block leaves time to put fixes together and to prove the whole."""
        return self._leaving(_TOGETHER)

    def joining(self) -> AbstractContextManager[None]:
        """What runs within the block leaves time for the last look, in a fresh process."""
        return self._leaving(0)

    @contextmanager
    def _leaving(self, processes: int) -> Iterator[None]:
        before = self._bench.deadline
        if self._end is not None:
            self._bench.deadline = self._end - self._reserve(processes)
        try:
            yield
        finally:
            self._bench.deadline = before

    def _reserve(self, processes: int) -> float:
        bench = self._bench
        return _ROOM * (bench.start_s + (processes + 1) * bench.longest_s)
