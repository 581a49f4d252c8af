"""Follows the files of one run: what is new at each look, drawn, and whether it goes on; and its
totals so far.

A look takes a thread's time, never the event loop's. What it keeps is bounded: of a flood the
newest entries are drawn and the others are counted.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from compilescope.apps.dashboard.live.live_entries import kind_of, moment
from compilescope.base.errors import ToolError
from compilescope.base.processes.outcome import status_words
from compilescope.base.processes.table import is_running
from compilescope.knowledge.findings.breaks import site_key
from compilescope.knowledge.findings.failures import failure_key
from compilescope.record import bodies
from compilescope.record.event import Event
from compilescope.record.eventfile import EventTail, Replaced, event_files
from compilescope.record.header import FILE_NAME, RunHeader, read_header
from compilescope.record.run import is_live
from compilescope.report.blocks import Figure, Figures
from compilescope.report.places import count
from compilescope.report.render.html import draw
from compilescope.report.render.spans import duration

_MOST_DISTINCT = 100_000
"""Causes that are told apart. Chosen: a bound for memory; the page then says "at least"."""
_MOST_S = 1e12
"""A file may hold any number; their sum must stay one that can be sent."""
DRAWN = 40
"""Entries that one look draws: of more, the newest. Chosen: more scroll by unread."""
_MOST_BYTES = 4 << 20
"""Read at one look. Chosen: a bound for memory and for how long others wait for their look."""

State = Literal["running", "ended", "lost", "gone"]
"""`lost`: it stopped without a word. `gone`: its folder was deleted."""


@dataclass(frozen=True)
class LiveEntry:
    """One event, as a page shows it."""

    key: str
    """The event's id, and how often the files were begun anew: no other entry has it."""
    kind: str
    html: str


@dataclass
class NewEntries:
    """What is new. It is whole: the next look may be on its way in another thread."""

    entries: list[LiveEntry] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """Older ones that were not drawn, by kind."""
    anew: bool = False
    """All that was known before is void: a file was replaced."""
    more: bool = False
    """There is more to read already."""
    standing: dict[str, Any] = field(default_factory=dict)
    """What the run comes to so far; empty where nothing changed."""

    @property
    def is_empty(self) -> bool:
        return not (self.standing or self.anew)


class RunTail:
    """The only reader of a run that is watched."""

    def __init__(self, folder: Path, *, drawn: int = DRAWN) -> None:
        self.folder = folder
        self.header: RunHeader | None = None
        self.state: State = "running"
        self._totals = LiveTotals()
        self._counts: Counter[str] = Counter()
        """Entries so far, by kind."""
        self._drawn = drawn
        self._life = 0
        self._first = True
        self._files: dict[Path, EventTail] = {}
        self._header_stamp: tuple[int, int, int] | None = None

    def look(self) -> NewEntries:
        try:
            return self._look()
        except (Replaced, OSError):
            pass  # A file of it is another one or is gone; so may the folder be.
        if not (self.folder / FILE_NAME).is_file():
            self.state = "gone"
            return NewEntries()
        self._life += 1
        self._files.clear()
        self._totals = LiveTotals()
        self._counts.clear()
        try:
            found = self._look()
        except (Replaced, OSError):
            found = NewEntries()
        found.anew = True
        found.standing = self._standing()
        return found

    def _look(self) -> NewEntries:
        found = NewEntries()
        try:
            # First who writes, then what was written: else the last lines could be missed.
            header = self._read_header()
        except ToolError:
            self.state = "gone"
            return found
        running = is_live(header)
        events, found.more = self._read()
        self._add(events, header, found)
        if not running and not found.more:
            self.state = "lost" if header.ended_ns is None else "ended"
        return found

    def _read_header(self) -> RunHeader:
        """It is written twice: at the beginning and at the end."""
        found = os.stat(self.folder / FILE_NAME)
        stamp = (found.st_ino, found.st_size, found.st_mtime_ns)
        if self.header is None or stamp != self._header_stamp:
            self.header, self._header_stamp = read_header(self.folder), stamp
        return self.header

    def _read(self) -> tuple[list[Event], bool]:
        files = event_files(self.folder)
        if not self._files.keys() <= set(files):
            raise Replaced("an event file is gone")
        events: list[Event] = []
        room = _MOST_BYTES
        more = False
        for path in files:
            if room <= 0:
                more = True
                break
            tail = self._files.get(path) or EventTail(path, _MOST_BYTES)
            before = tail.place
            try:
                events += tail.read()
            except OSError:
                if path in self._files:
                    raise
                continue  # It never could be read, such as a link to nowhere.
            self._files[path] = tail
            room -= tail.place - before
            more |= tail.has_more
        events.sort(key=lambda event: event.time_ns)
        return events, more

    def _add(self, events: list[Event], header: RunHeader, found: NewEntries) -> None:
        shown: deque[tuple[str, Event]] = deque()
        for event in events:
            self._totals.add(event)
            kind = kind_of(event)
            if kind is None:
                continue
            self._counts[kind] += 1
            shown.append((kind, event))
            if len(shown) > self._drawn:
                found.skipped[shown.popleft()[0]] += 1
        for kind, event in shown:
            item = moment(event, header.root, header.started_ns)
            entry = LiveEntry(f"{self._life}/{event.id[:80]}", kind, str(draw((item,))))
            found.entries.append(entry)
        if events or self._first:
            self._first = False
            found.standing = self._standing()

    def _standing(self) -> dict[str, Any]:
        return {
            "totals": self._totals.data(),
            "figures": str(draw((self._totals.figures(),))),
            "summary": self._totals.sentence(),
            "counts": dict(self._counts),
        }

    @property
    def elapsed(self) -> float:
        """Seconds since its start, or that it took."""
        if self.header is None:
            return 0.0
        end = self.header.ended_ns if self.header.ended_ns is not None else time.time_ns()
        return max(0.0, (end - self.header.started_ns) / 1e9)

    def ending(self) -> str:
        """How it ended, in a sentence."""
        header = self.header
        if self.state == "gone" or header is None:
            return "This run was deleted, or its folder can no longer be read."
        if self.state == "lost":
            if header.main_pid and is_running(header.main_pid, since=header.started_ns / 1e9):
                return (
                    "The process that recorded this run was killed. The program itself "
                    f"(process {header.main_pid}) is still running."
                )
            return "This run ended without recording its end: it was killed."
        if header.signal is not None:
            return status_words(-header.signal)
        if header.exit_status:
            return status_words(header.exit_status)
        return "Finished."


# The numbers of a run so far, added up event by event: at its end they are the report's.


class _DistinctCount:
    """How many different ones there were. Only hashes are kept, and not without end: a program
    that makes up names may run for days."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    def add(self, key: Hashable) -> None:
        if len(self._known) < _MOST_DISTINCT:
            self._known.add(hash(key))

    def __len__(self) -> int:
        return len(self._known)

    def text(self) -> str:
        return f"{'at least ' if len(self) == _MOST_DISTINCT else ''}{len(self)}"


class LiveTotals:
    """What a reader looks at first."""

    def __init__(self) -> None:
        self._captured = 0
        self._compiled = 0
        self._of_jobs = 0
        self.ops = 0
        self.break_events = 0
        self.recompiles = 0
        self.violations = 0
        self.jobs = 0
        self._compile_ns = 0
        self._job_seconds = 0.0
        self._sites = _DistinctCount()
        self._failures = _DistinctCount()

    @property
    def graphs(self) -> int:
        """Those of a device's compiler where it tells of them, as the report counts them."""
        return (self._compiled or self._captured) + self._of_jobs

    @property
    def breaks(self) -> int:
        """Distinct ones."""
        return len(self._sites)

    @property
    def failures(self) -> int:
        return len(self._failures)

    @property
    def compile_seconds(self) -> float:
        return round(self._compile_ns / 1e9 + self._job_seconds, 3)

    def add(self, event: Event) -> None:
        match event.body:
            case bodies.GraphCaptured(stage="dynamo", ops=ops):
                self._captured += 1
                self.ops += ops or 0
            case bodies.GraphCompiled():
                self._compiled += 1
            case bodies.GraphBreak() as broken:
                self.break_events += 1
                self._sites.add(site_key(event, broken))
            case bodies.Recompile(refused=""):
                self.recompiles += 1
            case bodies.CompileTime(duration_ns=spent):
                self._compile_ns += spent
            case bodies.CompileFailed() as failed:
                self._failures.add(failure_key(event, failed))
            case bodies.Violation():
                self.violations += 1
            case bodies.JobEnded() as job:
                self.jobs += 1
                self._of_jobs += job.graphs or 0
                self._job_seconds = min(_MOST_S, self._job_seconds + (job.compile_seconds or 0.0))

    def data(self) -> dict[str, Any]:
        return {
            "graphs": self.graphs,
            "breaks": self.breaks,
            "recompiles": self.recompiles,
            "failures": self.failures,
            "violations": self.violations,
            "compile_seconds": self.compile_seconds,
        }

    def figures(self) -> Figures:
        times = "once" if self.break_events == 1 else f"{self.break_events} times"
        spent = duration(self.compile_seconds * 1e9) if self.compile_seconds else "0 s"
        shown = [
            Figure(str(self.graphs), "Graphs", count(self.ops, "op") if self.ops else ""),
            Figure(
                self._sites.text(),
                "Graph breaks",
                f"reported {times}" if self.breaks else "",
                "warn" if self.breaks else "plain",
            ),
            Figure(str(self.recompiles), "Recompiles", "", "warn" if self.recompiles else "plain"),
            Figure(spent, "Compile time"),
        ]
        if self.failures:
            shown.append(Figure(self._failures.text(), "Failures", "", "bad"))
        if self.violations:
            shown.append(Figure(str(self.violations), "Violations", "", "bad"))
        if self.jobs:
            shown.append(Figure(str(self.jobs), "Jobs ended"))
        return Figures(tuple(shown))

    def sentence(self) -> str:
        """For who listens to the page."""
        parts = [
            count(self.breaks, "graph break"),
            count(self.recompiles, "recompile"),
            count(self.graphs, "graph"),
        ]
        if self.failures:
            parts.insert(0, count(self.failures, "failed compilation"))
        return ", ".join(parts) + "."
