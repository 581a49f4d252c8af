"""A run as a row: what a table of runs shows of it."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from compilescope.analysis.figures import RunFigures, RunKind
from compilescope.analysis.glance import program_of, status_of
from compilescope.dashboard.runs.entry import RunEntry
from compilescope.model.header import RunHeader


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
