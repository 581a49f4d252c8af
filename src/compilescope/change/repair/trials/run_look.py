"""A look at a run under capture while it goes on: is what it has shown enough?"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from compilescope.change.repair.trials.losses import count_operators
from compilescope.change.repair.trials.recorded_runs import CapturedRun
from compilescope.knowledge.analysis.digest import digest
from compilescope.record.run import read_run

_SHARE = 0.1
"""Of the time, at most, goes into looking. Chosen: a run that nobody ends costs little more."""


class RunLook:
    """Called now and then. Looks only where events have come, and not all the time."""

    def __init__(self, folder: Path, enough: Callable[[CapturedRun], object]) -> None:
        self._folder = folder
        self._enough = enough
        self._begun = time.monotonic()
        self._known = 0
        self._next = 0.0
        self.found: CapturedRun | None = None
        """What was enough."""

    def __call__(self) -> bool:
        begun = time.monotonic()
        size = sum(file.stat().st_size for file in self._folder.glob("events-*"))
        if size == self._known or begun < self._next:
            return False
        self._known = size
        seen = self._seen(begun - self._begun)
        if self._enough(seen):
            self.found = seen
        now = time.monotonic()
        self._next = now + (now - begun) / _SHARE
        return self.found is not None

    def _seen(self, seconds: float) -> CapturedRun:
        run = read_run(self._folder, live=True)
        return CapturedRun(
            run=run,
            digest=digest(run),
            exit_status=0,
            timed_out=False,
            stdout=b"",
            stderr=b"",
            seconds=seconds,
            operators=count_operators(run),
            folder=self._folder,
            is_part=True,
        )
