"""Benchmarks over time: what was measured of one model on one backend, run after run.

Figures of different machines are never joined: they are series of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from compilescope.analysis.benchmark_changes import BenchmarkChange, benchmark_changes
from compilescope.analysis.benchmarks import EAGER, Setup, benchmarks, machines, setup_of
from compilescope.model.benchmarked import Benchmark, Machine
from compilescope.model.run import Run

Hardware = tuple[str, int | None, int | None, tuple[str, ...]] | None
"""What makes figures comparable: CPU, cores, threads, accelerators. None: not known."""


class Measured(NamedTuple):
    """One row of one benchmark run."""

    run: str
    started_ns: int
    machine: Machine | None
    row: Benchmark


class Series(NamedTuple):
    """One model on one backend on one machine."""

    setup: Setup
    backend: str
    compile_mode: str
    hardware: Hardware
    points: tuple[Measured, ...]
    """Oldest first."""
    change: BenchmarkChange | None
    """From the last but one to the last; None where there is but one, or where it is not known
    that both were measured on the same machine."""


def hardware_of(machine: Machine | None) -> Hardware:
    if machine is None or not (machine.cpu or machine.accelerators):
        return None
    return machine.cpu, machine.cores, machine.threads, machine.accelerators


def benchmark_history(runs: Sequence[Run]) -> list[Series]:
    """By model, in the order of the newest run; eager mode first, then the other backends."""
    ordered = sorted(runs, key=lambda run: run.header.started_ns)
    found: dict[tuple[Setup, str, str, Hardware], list[Measured]] = {}
    rows: dict[str, list[Benchmark]] = {}
    for run in ordered:
        name = run.header.run
        machine = next(iter(machines(run)), None)
        rows[name] = benchmarks(run)
        for row in rows[name]:
            key = (setup_of(row), row.backend, row.compile_mode, hardware_of(machine))
            found.setdefault(key, []).append(Measured(name, run.header.started_ns, machine, row))
    changes = _Changes(rows)
    series = [
        Series(*key, tuple(points), changes.last(points) if key[-1] is not None else None)
        for key, points in found.items()
    ]
    newest = {each.setup: each.points[-1].started_ns for each in series}
    for each in series:
        newest[each.setup] = max(newest[each.setup], each.points[-1].started_ns)
    return sorted(
        series,
        key=lambda each: (-newest[each.setup], each.setup, each.backend != EAGER, each.backend),
    )


class _Changes:
    """Each pair of runs is compared once: an interval takes its time."""

    def __init__(self, rows: dict[str, list[Benchmark]]) -> None:
        self._rows = rows
        self._known: dict[tuple[str, str], list[BenchmarkChange]] = {}

    def last(self, points: Sequence[Measured]) -> BenchmarkChange | None:
        if len(points) < 2:
            return None
        before, after = points[-2:]
        pair = (before.run, after.run)
        if pair not in self._known:
            self._known[pair] = benchmark_changes(self._rows[before.run], self._rows[after.run])
        wanted = (setup_of(after.row), after.row.backend)
        return next(
            (c for c in self._known[pair] if (setup_of(c.after), c.backend) == wanted), None
        )
