"""Two runs of any kind side by side: what the rules say, and the document that shows it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from compilescope.analysis.benchmark_changes import BenchmarkComparison, compare_benchmarks
from compilescope.analysis.benchmarks import is_benchmark
from compilescope.analysis.comparison import RunComparison, compare
from compilescope.analysis.digest import digest
from compilescope.analysis.sweeps import Regressions, is_sweep, regressions, sweep_of
from compilescope.errors import ToolError
from compilescope.model.run import Run, read_run
from compilescope.report.benchmark_changes import benchmark_comparison_document
from compilescope.report.blocks import Document
from compilescope.report.comparison import comparison_document
from compilescope.report.sweep_changes import changes_document

_OF_RANK = re.compile(r"^(?P<run>.*)@(?P<rank>\d{1,9})$")


class ComparedRun(NamedTuple):
    """A run, or one rank of it, and what to call it."""

    run: Run
    name: str


class Compared(NamedTuple):
    seen: RunComparison | BenchmarkComparison | Regressions
    document: Document


def split_rank(name: str) -> tuple[str, int | None]:
    """`RUN@1` is rank 1 of a run."""
    match = _OF_RANK.match(name)
    return (match["run"], int(match["rank"])) if match is not None else (name, None)


def read_side(folder: Path, rank: int | None = None) -> ComparedRun:
    whole = read_run(folder)
    if rank is None:
        return ComparedRun(whole, whole.header.run)
    ranks = sorted({event.rank for event in whole.events})
    if rank not in ranks:
        there = ", ".join(map(str, ranks)) or "none"
        raise ToolError(f"{whole.header.run} has no rank {rank}. Its ranks: {there}.")
    run = whole.narrowed(lambda event: event.rank == rank)
    return ComparedRun(run, f"{whole.header.run}@{rank}")


def compare_runs(before: ComparedRun, after: ComparedRun) -> Compared:
    """Sweeps and benchmarks can only be compared with their own kind."""
    sides = (before, after)
    if _all_are([is_sweep(side.run) for side in sides], sides, "sweep"):
        changes = regressions(sweep_of(before.run), sweep_of(after.run))
        return Compared(changes, changes_document(changes, after.run.header.root))
    names = (before.name, after.name)
    if _all_are([is_benchmark(side.run) for side in sides], sides, "benchmark run"):
        measured = compare_benchmarks(before.run, after.run, names)
        return Compared(measured, benchmark_comparison_document(measured))
    seen = compare(digest(before.run), digest(after.run), names)
    roots = (before.run.header.root, after.run.header.root)
    return Compared(seen, comparison_document(seen, roots))


def _all_are(kinds: list[bool], sides: tuple[ComparedRun, ComparedRun], kind: str) -> bool:
    if any(kinds) and not all(kinds):
        other = sides[0].name if kinds[1] else sides[1].name
        raise ToolError(f"{other} is not a {kind}, so it can't be compared with one.")
    return all(kinds)
