"""The numbers of a run so far, added up event by event: at its end they are the report's."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from compilescope.findings.breaks import site_key
from compilescope.findings.failures import failure_key
from compilescope.model import bodies
from compilescope.model.event import Event
from compilescope.report.blocks import Figure, Figures
from compilescope.report.places import count
from compilescope.report.render.spans import duration

MOST_DISTINCT = 100_000
"""Causes that are told apart. Chosen: a bound for memory; the page then says "at least"."""
_MOST_S = 1e12
"""A file may hold any number; their sum must stay one that can be sent."""


class _Distinct:
    """How many different ones there were. Only hashes are kept, and not without end: a program
    that makes up names may run for days."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    def add(self, key: Hashable) -> None:
        if len(self._known) < MOST_DISTINCT:
            self._known.add(hash(key))

    def __len__(self) -> int:
        return len(self._known)

    def text(self) -> str:
        return f"{'at least ' if len(self) == MOST_DISTINCT else ''}{len(self)}"


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
        self._sites = _Distinct()
        self._failures = _Distinct()

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
