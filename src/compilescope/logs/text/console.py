"""What the readers of one console log share: its processes, its clocks and its events.

Torch's lines carry no year, other writers' no time at all. Invariant: the times given for one
process never go back, so that events keep the order of the log whatever clocks its writers had.
"""

from __future__ import annotations

import calendar
import time
from collections.abc import Sequence
from dataclasses import dataclass

from compilescope.logs.format import LogSource, Writer
from compilescope.logs.text.lines import Tag
from compilescope.record.bodies import Body, GraphCompiled
from compilescope.record.stack import Frame

_MOST_PROCESSES = 4096
"""Chosen: a bound for memory, for logs with made-up ids."""


@dataclass
class Announced:
    """A graph that torch_xla is about to compile: a device's compiler may tell more of it."""

    body: GraphCompiled
    stack: tuple[Frame, ...]
    time_ns: int


@dataclass
class ConsoleProcess:
    """One process whose lines are in the log."""

    rank: int = 0
    pid: int = 0
    now_ns: int = 0
    """The last time that was seen."""
    handed: str | None = None
    """The last compile id for which Dynamo called a backend."""
    backend: str | None = None
    announced: Announced | None = None
    unstamped: bool = False
    """Something of it stood in lines that name no process."""


class Console:
    """One log, as all text formats see it."""

    def __init__(self, writer: Writer, source: LogSource) -> None:
        self.writer = writer
        self.source = source
        self.tally = source.tally
        self.clock = LogClock(source.modified_ns)
        self.first_ns = 0
        """The first time that the log tells: what comes before it was not later."""
        self._block = b""
        self._block_at = 0
        self._lines_before = 0
        self._processes: dict[tuple[bytes, int], ConsoleProcess] = {}
        self._latest: dict[bytes, ConsoleProcess] = {}

    def begin(self, block: bytes) -> None:
        """What is read next, as it is in the file."""
        self._lines_before += self._block.count(b"\n")
        self._block, self._block_at = block, 0

    def line_number(self, text: bytes) -> int:
        """Of the line in the file that holds this text, from 1; asked for in the log's order.
        0 where it is not known: colors may run through it, or lines were taken away before."""
        found = -1 if self.source.in_parts else self._block.find(text, self._block_at)
        if found < 0:
            return 0
        self._block_at = found + len(text)
        return self._lines_before + self._block.count(b"\n", 0, found) + 1

    def process_of(self, tag: Tag, pid: int) -> ConsoleProcess:
        """The process that wrote a line which names its process id."""
        found = self._processes.get((tag.text, pid))
        if found is None:
            found = self._begun(tag, pid)
        elif tag.rank is not None and found.rank != tag.rank:
            found.rank = tag.rank
        self._latest[tag.text] = found
        return found

    def process_behind(self, tag: Tag) -> ConsoleProcess:
        """The process that a line without a process id belongs to: the last that was heard of."""
        found = self._latest.get(tag.text)
        if found is None and tag.rank is not None:
            same = (p for p in self._processes.values() if p.rank == tag.rank and p.pid)
            found = next(same, None)
        if found is None:
            found = self._latest[tag.text] = self._begun(tag, tag.pid or 0)
        return found

    def _begun(self, tag: Tag, pid: int) -> ConsoleProcess:
        nameless = self._processes.pop((tag.text, 0), None) if pid else None
        if nameless is not None and not nameless.now_ns:
            nameless = None
        rank = tag.rank if tag.rank is not None else self.source.rank or 0
        process = ConsoleProcess(rank, pid, nameless.now_ns if nameless else 0)
        if len(self._processes) < _MOST_PROCESSES:
            self._processes[tag.text, pid] = process
        return process

    def processes(self) -> list[ConsoleProcess]:
        """Those that were heard of, by a process id or a tag."""
        return [p for (tag, pid), p in self._processes.items() if tag or pid or p.unstamped]

    @property
    def crowded(self) -> bool:
        """Did lines that name no process stand among those of several, with no tag on them?"""
        untagged = [p for (tag, _), p in self._processes.items() if not tag and p.pid]
        ranks = {p.rank for p in untagged}
        if len(untagged) < 2:
            return False
        return any(p.unstamped for p in untagged) or (len(ranks) > 1 and self._nameless)

    @property
    def _nameless(self) -> bool:
        nobody = self._processes.get((b"", 0))
        return nobody is not None and nobody.unstamped

    def event(
        self,
        process: ConsoleProcess,
        body: Body,
        *,
        stack: Sequence[Frame] = (),
        compile_id: str | None = None,
        time_ns: int | None = None,
        epoch: int = 0,
    ) -> str:
        if not process.now_ns:
            process.now_ns = self.first_ns or self.source.modified_ns
        when = time_ns or process.now_ns
        self.writer.sources(stack)
        return self.writer.event(
            body,
            time_ns=when,
            pid=process.pid,
            rank=process.rank,
            compile_id=compile_id,
            stack=stack,
            epoch=epoch,
        )

    def announce(self, process: ConsoleProcess, announced: Announced) -> None:
        """torch_xla says that it compiles a graph, and why."""
        self.settle(process)
        process.announced = announced
        process.unstamped = True

    def settle(self, process: ConsoleProcess) -> None:
        """Nothing more will be told of the graph that was announced."""
        announced, process.announced = process.announced, None
        if announced is not None:
            self.event(
                process, announced.body, stack=announced.stack, time_ns=announced.time_ns or None
            )


_DAY_NS = 86_400 * 10**9
_YEAR_BACK_DAYS = 300
"""A log without years that jumps back so far has passed New Year. Chosen: less than a year, and far
more than lines of two processes are out of order."""


class LogClock:
    """The times of one log."""

    def __init__(self, modified_ns: int) -> None:
        self._modified_ns = modified_ns
        self._year: int | None = None
        self._last_day = 0
        self._days: dict[tuple[int, bytes], int] = {}
        self._last: tuple[tuple[bytes, bytes], int | None] = ((b"", b""), None)

    def torch_ns(self, date: bytes, clock: bytes) -> int | None:
        """`1115` and `00:19:43.591000`, as if in UTC: no log says its time zone."""
        if self._last[0] != (date, clock):
            self._last = ((date, clock), self._torch_ns(date, clock))
        return self._last[1]

    def _torch_ns(self, date: bytes, clock: bytes) -> int | None:
        try:
            month, day = int(date[:2]), int(date[2:])
            hour, minute, second = int(clock[:2]), int(clock[3:5]), int(clock[6:8])
            micro = int(clock[9:15])
        except ValueError:
            return None
        midnight = self._midnight(month, day, date)
        if midnight is None or hour > 23 or minute > 59 or second > 60:
            return None
        return midnight + ((hour * 60 + minute) * 60 + second) * 10**9 + micro * 1000

    def _midnight(self, month: int, day: int, date: bytes) -> int | None:
        if self._year is None:
            self._year = self._first_year(month, day)
        found = self._days.get((self._year, date))
        if found is None:
            found = _day_ns(self._year, month, day)
            if found is None:
                return None
            if found < self._last_day - _YEAR_BACK_DAYS * _DAY_NS:
                self._year += 1  # The log goes on after New Year.
                found = _day_ns(self._year, month, day)
                if found is None:
                    return None
            self._days[self._year, date] = found
            self._last_day = max(self._last_day, found)
        return found

    def _first_year(self, month: int, day: int) -> int:
        """The last year in which that day was not after the log was last written."""
        year = time.gmtime(self._modified_ns // 10**9).tm_year
        first = _day_ns(year, month, day)
        if first is not None and first > self._modified_ns + _DAY_NS:
            return year - 1
        return year


def _day_ns(year: int, month: int, day: int) -> int | None:
    if not (1 <= month <= 12 and 1 <= day <= 31 and 1970 <= year <= 2200):
        return None
    return calendar.timegm((year, month, day, 0, 0, 0)) * 10**9
