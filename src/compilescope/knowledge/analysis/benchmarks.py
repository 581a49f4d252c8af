"""A benchmark run's rows: which belong together, and which way each differs from eager mode."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from compilescope.record.benchmark import Benchmark, Interval, Machine, too_wide
from compilescope.record.run import Run

EAGER = "eager"
Effect = Literal["faster", "slower", "same", "unknown"]


class Setup(NamedTuple):
    """What two rows must share to be comparable, whatever their backend."""

    model: str
    mode: str
    device: str
    dtype: str
    batch: int
    small: bool


class Trial(msgspec.Struct, frozen=True):
    """One setup: eager mode's row, and one for each backend."""

    setup: Setup
    eager: Benchmark | None
    compiled: tuple[Benchmark, ...]

    @property
    def rows(self) -> tuple[Benchmark, ...]:
        return (self.eager, *self.compiled) if self.eager is not None else self.compiled


def is_benchmark(run: Run) -> bool:
    """One that has measured nothing yet is known by its command."""
    begun = run.count(Machine) > 0 and "bench" in run.header.command[:2]
    return run.count(Benchmark) > 0 or begun


def setup_of(row: Benchmark) -> Setup:
    return Setup(row.model, row.mode, row.device, row.dtype, row.batch, row.small)


def benchmarks(run: Run) -> list[Benchmark]:
    """In the order in which they were first recorded; of the same one the last counts."""
    rows = {(setup_of(row), row.backend): row for _, row in run.of(Benchmark)}
    return without_noise(rows.values())


def without_noise(rows: Iterable[Benchmark]) -> list[Benchmark]:
    """A speed-up is told only of figures that say more than the noise in them."""
    every = list(rows)
    noisy = {setup_of(row) for row in every if row.backend == EAGER and row.noisy_latency}
    return [
        msgspec.structs.replace(row, speedup=None, speedup_ci=None, too_noisy=True)
        if setup_of(row) in noisy or row.noisy_latency or too_wide(row.speedup, row.speedup_ci)
        else row
        for row in every
    ]


def trials(run: Run) -> list[Trial]:
    groups: dict[Setup, list[Benchmark]] = {}
    for row in benchmarks(run):
        groups.setdefault(setup_of(row), []).append(row)
    return [
        Trial(
            setup,
            next((row for row in rows if row.backend == EAGER), None),
            tuple(row for row in rows if row.backend != EAGER),
        )
        for setup, rows in groups.items()
    ]


def compiled_backends(run: Run) -> list[str]:
    """Inductor first: it is the one that people ask about."""
    names = dict.fromkeys(row.backend for row in benchmarks(run) if row.backend != EAGER)
    return sorted(names, key=lambda name: name != "inductor")


def machines(run: Run) -> list[Machine]:
    return list({body.name: body for _, body in run.of(Machine)}.values())


def effect(interval: Interval | None) -> Effect:
    """What the interval of a speed-up says; one that contains 1 shows no difference."""
    if interval is None:
        return "unknown"
    low, high = interval
    return "faster" if low > 1 else "slower" if high < 1 else "same"


def is_failure(row: Benchmark) -> bool:
    """No figures, or figures of wrong numbers."""
    return bool(row.error) or row.kerneldiff == "fail"
