"""Searches for fixes among the runs: what each verified, read without reading the whole run."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from compilescope.change.fixes.stored import StoredFix, read_outcome
from compilescope.change.repair.delivery.stored_fix import AppliedFix
from compilescope.record.artifacts import ARTIFACTS, DiskArtifacts
from compilescope.record.bodies import FixAttempt, FixOutcome
from compilescope.record.event import Event, UnreadableLine, decode
from compilescope.record.eventfile import LONGEST_LINE, event_files
from compilescope.record.header import RunHeader, read_header
from compilescope.record.plain_files import open_plain

_MARK = b'"kind":"Fix'
# Chosen: bounds for memory; those asked for longest ago go first.
_MOST_KEPT = 2000
_MOST_RESULTS = 200


@dataclass(frozen=True)
class FixRun:
    """One search for fixes."""

    header: RunHeader
    attempts: tuple[FixAttempt, ...]
    fix: StoredFix | None
    """None: an earlier version of the tool did not keep it."""


@dataclass
class FixRuns:
    """What was read of them, until their files change; and what was applied since the start."""

    _read: OrderedDict[Path, tuple[object, FixRun]] = field(default_factory=OrderedDict)
    _applied: OrderedDict[str, AppliedFix] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, folder: Path) -> FixRun:
        """Raises `ToolError` or `OSError` where the run is gone or damaged."""
        files = event_files(folder)
        stamp = tuple((path.name, *_stamp(path)) for path in files)
        with self._lock:
            kept = self._read.get(folder)
            if kept is not None and kept[0] == stamp:
                self._read.move_to_end(folder)
                return kept[1]
        found = read_fix_run(folder, files)
        with self._lock:
            self._read[folder] = (stamp, found)
            while len(self._read) > _MOST_KEPT:
                self._read.popitem(last=False)
        return found

    def applied(self, run: str) -> AppliedFix | None:
        return self._applied.get(run)

    def note_applied(self, run: str, done: AppliedFix) -> None:
        self._applied[run] = done
        while len(self._applied) > _MOST_RESULTS:
            self._applied.popitem(last=False)


def read_fix_run(folder: Path, files: list[Path]) -> FixRun:
    header = read_header(folder)
    attempts, outcome = [], None
    for event in _fix_events(files):
        if isinstance(event.body, FixAttempt):
            attempts.append(event.body)
        elif isinstance(event.body, FixOutcome):
            outcome = event.body
    fix = None
    if outcome is not None:
        fix = read_outcome(outcome, DiskArtifacts(folder / ARTIFACTS), header.root)
    return FixRun(header, tuple(attempts), fix)


def _fix_events(files: list[Path]) -> Iterator[Event]:
    """Those of a search alone: a capture has a hundred thousand others."""
    for path in files:
        with open_plain(path) as stream:
            while line := stream.readline(LONGEST_LINE):
                if _MARK in line:
                    try:
                        yield decode(line)
                    except UnreadableLine:
                        continue


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size
