"""How often each compiled region is called: what tells "compiled once and then reused" from
"compiled again and again"; and from where it is called, now and then.

torch itself calls a pair of functions when compiled code is entered and left, so no frame of ours
stands in the user's stack. Both run at every call: one is an addition, the other a list's own pop.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

from compilescope.base.processes.interruptions import let_through
from compilescope.instrument.torchapi.sinks import Sink
from compilescope.instrument.torchapi.stacks import callers
from compilescope.instrument.torchapi.times.memory import memory_taken
from compilescope.instrument.torchapi.times.region_times import existing_regions
from compilescope.record.bodies import RegionCalls
from compilescope.record.stack import Frame

_FIRST_WRITTEN = 16
"""Calls. A count is written there and at each doubling, so that a program that is killed has lost
less than half of it. Chosen: short programs have one at their end alone."""
_DEEPEST = 500
"""Regions within regions. Chosen: torch 2.13 leaves some without saying so."""
_live: weakref.WeakSet[CallCounts] = weakref.WeakSet()


class _Region:
    __slots__ = ("calls", "number", "stack", "written")

    def __init__(self, number: int) -> None:
        self.number = number
        self.calls = self.written = 0
        self.stack: list[Frame] = []
        """From where it was called last, of the calls that are looked at."""


class _Entered(threading.local):
    """The regions that a thread is in, innermost last."""

    def __init__(self) -> None:
        self.regions: list[_Region] = []


class CallCounts:
    """The regions of one capture."""

    def __init__(self, sink: Sink, look: Callable[[], None]) -> None:
        """`look` is called now and then, each time after twice as many calls."""
        self._sink = sink
        self._look = look
        self._entered = _Entered()
        self._regions: list[_Region] = []
        self._enters: weakref.WeakKeyDictionary[Any, Callable[[], Any]] = (
            weakref.WeakKeyDictionary()
        )
        _live.add(self)

    def count(self, context: Any) -> None:
        """Count the calls of what `context`, the object behind one `torch.compile`, is around."""
        if not callable(getattr(context, "callback", None)) or context in self._enters:
            return
        region = _Region(len(self._regions))
        self._regions.append(region)
        enter = self._enters[context] = self._counter(region)
        # Before torch's own: a signal that comes while ours runs must not leave theirs entered.
        context.enter_exit_hooks.insert(0, enter)

    def count_existing(self) -> None:
        """Functions that were compiled before we came are entered like any other."""
        for context in existing_regions():
            self.count(context)

    def _counter(self, region: _Region) -> Callable[[], Callable[[], object]]:
        entered, seldom = self._entered, self._seldom

        def enter() -> Callable[[], object]:
            regions = entered.regions
            regions.append(region)
            region.calls = calls = region.calls + 1
            if calls & (calls - 1) == 0:
                seldom(region, regions)
            return regions.pop

        return enter

    def _seldom(self, region: _Region, regions: list[_Region]) -> None:
        try:
            if len(regions) > _DEEPEST:
                del regions[: _DEEPEST // 2]
            self._look()
            if len(regions) == 1:
                region.stack = callers()
            if region.calls >= _FIRST_WRITTEN:
                self._write(region)
        except Exception as error:  # The border of a hook.
            let_through(error)
            self._sink.fault("region-calls", error)

    @property
    def current(self) -> tuple[int, int] | None:
        """The number of the region that this thread is in, and of its call, from 1."""
        regions = self._entered.regions
        return (regions[-1].number, regions[-1].calls) if regions else None

    def _write(self, region: _Region) -> None:
        if region.calls != region.written:
            region.written = region.calls
            told = RegionCalls(region.number, region.calls, memory_taken())
            self._sink.emit(told, region.stack)

    def write(self) -> None:
        for region in self._regions:
            self._write(region)

    def close(self) -> None:
        """Write the counts and take every counter off again."""
        self.write()
        for context, enter in list(self._enters.items()):
            if enter in context.enter_exit_hooks:
                context.enter_exit_hooks.remove(enter)

    def after_fork(self) -> None:
        """In the child: what the parent counted is the parent's to write."""
        for region in self._regions:
            region.calls = region.written = 0


def _after_fork() -> None:
    for counts in list(_live):
        counts.after_fork()


os.register_at_fork(after_in_child=_after_fork)
