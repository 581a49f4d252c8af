"""Thousands of quick jobs through the scheduler: throughput, memory, and overhead of each job.

    python benchmarks/sweep_scheduler.py [--jobs 10000] [--workers 2] [--store URL] [--only KIND]

No torch. `task`: a task that returns at once. `program`: a task that starts `true` within limits of
time and memory. Jobs go through the local engine into a store (a temporary folder, or `--store`).
Memory is the resident size of the driver, and of all workers with their keepers, looked at when a
tenth, a half and all of the jobs have ended. Overhead is a worker's time on a job beyond its
program. At the end the store is opened again, as `--resume` does. Exits with 1 when memory grows
with the number of jobs, when a result is missing, or when overhead is above its bar: half of the
jobs 100 ms, one in a hundred 1 s.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

# Where workers find this module's tasks.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from compilescope.scale.jobs.job import Desk, Job, JobLimits, Verdict
from compilescope.scale.jobs.local_engine import LocalEngine
from compilescope.scale.jobs.schedule import run_jobs
from compilescope.scale.jobs.store import Store, plan_of
from compilescope.scale.jobs.work import state_of

_KINDS = ("task", "program")
_BYTES_PER_JOB = 500
"""More than this, in the driver or the workers, and memory grows with the number of jobs: a result
with its findings is larger."""
_MEDIAN_S, _P99_S = 0.1, 1.0
"""The bars for overhead. Chosen: far below what a program takes that imports torch."""


def task(payload: dict[str, Any], desk: Desk) -> Verdict:
    return Verdict(state="ok", value={"breaks": payload["number"]})


def program(payload: dict[str, Any], desk: Desk) -> Verdict:
    ended = desk.run(["true"], os.environ)
    return Verdict(state=state_of(ended), reason=ended.reason, value={"status": ended.status})


class Jobs:
    """Made when they are asked for, so that none of the memory is theirs."""

    def __init__(self, kind: str, count: int) -> None:
        self._kind = kind
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Job]:
        for number in range(self._count):
            yield Job(
                name=f"{self._kind} {number}",
                task=f"sweep_scheduler:{self._kind}",
                payload={"number": number},
                limits=JobLimits(seconds=60, memory_bytes=10**9),
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--store", default="")
    parser.add_argument("--only", choices=_KINDS)
    asked = parser.parse_args()
    good = True
    for kind in (asked.only,) if asked.only else _KINDS:
        with tempfile.TemporaryDirectory() as folder:
            good &= _measure(kind, asked.jobs, asked.workers, asked.store or folder)
    return 0 if good else 1


def _measure(kind: str, count: int, workers: int, url: str) -> bool:
    jobs = Jobs(kind, count)
    overheads: list[float] = []
    sizes: dict[int, tuple[int, int]] = {}
    looks = {count // 10, count // 2, count}
    begun = time.monotonic()
    with LocalEngine(workers) as engine, Store(url) as store:
        store.begin(plan_of(jobs, {"kind": kind}))
        for result in run_jobs(jobs, engine, store, lambda progress: None):
            assert result.state == "ok", result
            overheads.append(result.overhead_seconds)
            if len(overheads) in looks:
                sizes[len(overheads)] = _sizes()
    took = time.monotonic() - begun
    begun = time.monotonic()
    names = Store(url).names()
    resumed = time.monotonic() - begun
    _print(kind, workers, took, overheads, sizes, resumed)
    return len(names) == count and _is_bounded(sizes) and _is_quick(overheads)


def _sizes() -> tuple[int, int]:
    driver = psutil.Process()
    others = 0
    for process in driver.children(recursive=True):
        try:
            others += process.memory_info().rss
        except psutil.Error:
            continue
    return driver.memory_info().rss, others


def _is_bounded(sizes: dict[int, tuple[int, int]]) -> bool:
    first, last = min(sizes), max(sizes)
    most = (last - first) * _BYTES_PER_JOB
    return all(sizes[last][index] - sizes[first][index] <= most for index in (0, 1))


def _is_quick(overheads: list[float]) -> bool:
    median, p99 = _median_and_p99(overheads)
    return median <= _MEDIAN_S and p99 <= _P99_S


def _median_and_p99(overheads: list[float]) -> tuple[float, float]:
    return statistics.median(overheads), statistics.quantiles(overheads, n=100)[98]


def _print(
    kind: str,
    workers: int,
    took: float,
    overheads: list[float],
    sizes: dict[int, tuple[int, int]],
    resumed: float,
) -> None:
    count = len(overheads)
    median, p99 = _median_and_p99(overheads)
    print(f"{kind}: {count} jobs, {workers} workers, {took:.1f} s, {count / took:.0f} jobs/s")
    bar = "within" if _is_quick(overheads) else "ABOVE"
    print(
        f"  overhead per job: median {median * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms ({bar} the bar)"
    )
    for ended, (driver, others) in sorted(sizes.items()):
        print(f"  after {ended:>6}: driver {driver / 1e6:6.1f} MB, workers {others / 1e6:6.1f} MB")
    print(f"  bounded: {'yes' if _is_bounded(sizes) else 'NO'}; resume reads it in {resumed:.2f} s")


if __name__ == "__main__":
    raise SystemExit(main())
