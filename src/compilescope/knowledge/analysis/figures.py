"""The numbers that a row of a table of runs shows: breaks, recompiles, compile time and others.

They are counted as the report of each run counts them, so that no table contradicts a report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from compilescope.knowledge.analysis.benchmarks import benchmarks, is_benchmark
from compilescope.knowledge.analysis.device_checks import device_checks
from compilescope.knowledge.analysis.logged.device_breaks import device_sites
from compilescope.knowledge.analysis.logged.graphs import graph_count
from compilescope.knowledge.analysis.run_curves import peak_memory, step_seconds
from compilescope.knowledge.analysis.sweeps import is_sweep
from compilescope.knowledge.findings.breaks import break_sites
from compilescope.knowledge.findings.eager import eager_frames
from compilescope.knowledge.findings.failures import failures
from compilescope.knowledge.findings.recompiles import recompiled_frames
from compilescope.knowledge.source.spots import Sources
from compilescope.record.bodies import (
    Benchmark,
    CompileTime,
    DiffOutcome,
    FixAttempt,
    FixOutcome,
    JobEnded,
    LogRead,
    MinifyOutcome,
    TensorDiff,
    Violation,
)
from compilescope.record.run import Run

RunKind = Literal["run", "benchmark", "sweep", "numbers", "fix", "repro", "log"]
_MOST_MODELS = 100
"""That a run is known by; a sweep may have thousands. Chosen: a row of a table shows far fewer."""


class RunFigures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One run in numbers. Of a sweep or a benchmark: the sums over its jobs or models."""

    kind: RunKind = "run"
    torch: str = ""
    breaks: int = 0
    breaks_hidden: bool = False
    """There may be more: frames fell back to eager at a break."""
    recompiles: int = 0
    """Those that the program did not need."""
    graphs: int = 0
    eager: int = 0
    failures: int = 0
    compile_seconds: float = 0.0
    violations: int = 0
    step_seconds: float | None = None
    """Of a step in steady state."""
    peak_bytes: int | None = None
    """That the largest process took: on its devices, where it used any, else in all."""
    on_device: bool = False
    """Is that memory of devices?"""
    devices: tuple[str, ...] = ()
    """That graphs of it were checked against."""
    models: tuple[str, ...] = ()
    gb_ids: tuple[str, ...] = ()
    """Graph breaks by PyTorch's own ids, each once."""


def figures(run: Run) -> RunFigures:
    sites = [*break_sites(run), *device_sites(run, Sources(run))]
    failed = failures(run)
    jobs = [body for _, body in run.of(JobEnded)]
    rows = benchmarks(run)
    eager = eager_frames(run)
    graphs = graph_count(run).graphs
    compile_ns = sum(body.duration_ns for _, body in run.of(CompileTime))
    recompiles = sum(frame.avoidable for frame in recompiled_frames(run))
    counted: list[JobEnded | Benchmark] = [*jobs, *rows]
    memory = peak_memory(run)
    checks = device_checks(run)
    compile_seconds = compile_ns / 1e9 + sum(each.compile_seconds or 0 for each in counted)
    return RunFigures(
        kind=kind_of(run),
        torch=run.torch_version or next((job.torch for job in jobs if job.torch), ""),
        breaks=len(sites) + _sum(each.breaks for each in counted),
        breaks_hidden=any(frame.may_hide_breaks for frame in eager),
        recompiles=recompiles + _sum(each.recompiles for each in counted),
        graphs=graphs + _sum(each.graphs for each in counted),
        eager=len(eager) + _sum(job.eager for job in jobs),
        failures=len(failed) + _sum(job.failures for job in jobs),
        compile_seconds=round(compile_seconds, 3),
        violations=run.count(Violation) or _sum(check.errors for check in checks),
        step_seconds=_rounded(step_seconds(run)),
        peak_bytes=memory.device or memory.host,
        on_device=bool(memory.device),
        devices=tuple(check.device for check in checks)[:_MOST_MODELS],
        models=tuple(dict.fromkeys(_models(run)))[:_MOST_MODELS],
        gb_ids=_ids([site.gb_id for site in sites] + [failure.gb_id for failure in failed]),
    )


def _ids(found: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({gb_id for gb_id in found if gb_id}))


def kind_of(run: Run) -> RunKind:
    if is_sweep(run):
        return "sweep"
    if is_benchmark(run):
        return "benchmark"
    if run.count(LogRead):
        return "log"
    if run.count(FixAttempt) or run.count(FixOutcome):
        return "fix"
    if run.count(MinifyOutcome):
        return "repro"
    return "numbers" if run.count(TensorDiff) or run.count(DiffOutcome) else "run"


def _models(run: Run) -> Iterator[str]:
    for _, job in run.of(JobEnded):
        yield job.name
    for row in benchmarks(run):
        yield row.model
    for _, violation in run.of(Violation):
        if violation.model:
            yield violation.model


def _sum(amounts: Iterable[int | None]) -> int:
    return sum(amount or 0 for amount in amounts)


def _rounded(seconds: float | None) -> float | None:
    """Nanoseconds are more than a clock tells."""
    return None if seconds is None else round(seconds, 9)
