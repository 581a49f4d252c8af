"""A run as a row: what a table of runs shows of it, and the newest rows of a kind.

A page of many runs reads so many of the newest and no more, and says how many there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from compilescope.apps.dashboard.runs.entry import RunEntry
from compilescope.knowledge.analysis.figures import RunFigures, RunKind
from compilescope.knowledge.analysis.run_status import program_of, status_of
from compilescope.record.header import RunHeader
from compilescope.report.places import count

MOST_RUNS = 50
"""Chosen: each is read while the reader waits; the page says how many there are."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One run. Figures are None while they are not known."""

    run: str
    """Its id: the name of its folder."""
    home: Path
    kind: RunKind
    program: str
    """A short name of what ran; the same for every run of the same program."""
    command: tuple[str, ...]
    torch: str | None
    """Empty: no process of it imported torch."""
    status: str
    """As `compilescope list` has it."""
    started: float
    """In seconds since 1970."""
    seconds: float | None
    """Until its end, or until now; None: its end is not known."""
    live: bool
    breaks: int | None
    breaks_hidden: bool
    """There may be more."""
    recompiles: int | None
    graphs: int | None
    eager: int | None
    failures: int | None
    compile_seconds: float | None
    violations: int | None
    step_seconds: float | None
    peak_bytes: int | None
    on_device: bool
    devices: tuple[str, ...] | None
    """That its graphs were checked against."""
    models: tuple[str, ...]
    gb_ids: tuple[str, ...]
    """Of its graph breaks."""
    tags: tuple[str, ...]
    note: str
    problem: str = ""
    """Why there are no figures, or no labels."""
    pending: bool = False
    """The figures are still to be read."""

    @property
    def folder(self) -> Path:
        return self.home / self.run

    @property
    def text(self) -> str:
        """What a search looks at."""
        words = (self.program, *self.command, self.run, *self.tags, self.note, self.status)
        return "\n".join((*words, self.kind)).casefold()


def make_row(home: Path, entry: RunEntry, header: RunHeader, *, live: bool) -> RunRow:
    found = entry.figures
    figures = found or RunFigures()
    started = header.started_ns / 1e9
    ended = header.ended_ns / 1e9 if header.ended_ns is not None else time.time() if live else None
    return RunRow(
        run=entry.name,
        home=home,
        kind=figures.kind if found else _kind_by_command(header.command),
        program=program_of(header),
        command=header.command,
        torch=figures.torch if found else None,
        status=status_of(header, live=live),
        started=started,
        seconds=max(ended - started, 0.0) if ended is not None and started else None,
        live=live,
        breaks=figures.breaks if found else None,
        breaks_hidden=figures.breaks_hidden,
        recompiles=figures.recompiles if found else None,
        graphs=figures.graphs if found else None,
        eager=figures.eager if found else None,
        failures=figures.failures if found else None,
        compile_seconds=figures.compile_seconds if found else None,
        violations=figures.violations if found else None,
        step_seconds=figures.step_seconds,
        peak_bytes=figures.peak_bytes,
        on_device=figures.on_device,
        devices=figures.devices if found else None,
        models=figures.models,
        gb_ids=figures.gb_ids,
        tags=entry.labels.tags,
        note=entry.labels.note,
        problem=entry.problem or entry.labels_problem,
        pending=not entry.is_read,
    )


def _kind_by_command(command: tuple[str, ...]) -> RunKind:
    """Until its events are read."""
    kinds: dict[str, RunKind] = {
        "bench": "benchmark",
        "sweep": "sweep",
        "diff": "numbers",
        "logs": "log",
        "minify": "repro",
    }
    known = (kinds[word] for word in command[:2] if word in kinds)
    return next(known, "run")


class NewestRuns(NamedTuple):
    rows: tuple[RunRow, ...]
    """Newest first."""
    of: int
    """How many there are."""
    pending: int
    """Runs that may belong to them: what they are has not been read yet."""

    @property
    def note(self) -> str:
        """What a reader must know of those that are left out."""
        told = []
        if self.of > len(self.rows):
            told.append(f"The newest {len(self.rows)} of {self.of} runs.")
        if self.pending:
            told.append(f"{count(self.pending, 'more run is', 'more runs are')} still being read.")
        return " ".join(told)


def newest(rows: Sequence[RunRow], wanted: Callable[[RunRow], bool]) -> NewestRuns:
    found = [row for row in rows if wanted(row)]
    pending = sum(row.pending for row in rows) - sum(row.pending for row in found)
    return NewestRuns(tuple(found[:MOST_RUNS]), len(found), pending)
