"""Two benchmark runs side by side, and all of them in order of time: is a difference a change of
the backend, or of the machine?

The runs were made at different times. Eager mode is the control: where it changed too, a backend is
judged by its speed-up over eager mode, which a slower or faster machine does not move.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from compilescope.knowledge.analysis.benchmarks import (
    EAGER,
    Setup,
    benchmarks,
    effect,
    machines,
    setup_of,
)
from compilescope.knowledge.analysis.intervals import ratio
from compilescope.record.benchmark import Benchmark, Interval, Machine, too_wide
from compilescope.record.run import Run

_Hardware = tuple[str, int | None, int | None, tuple[str, ...]] | None
"""What makes figures comparable: CPU, cores, threads, accelerators. None: not known."""
Verdict = Literal["faster", "slower", "no real change", "unknown"]
_VERDICTS: dict[str, Verdict] = {
    "faster": "faster",
    "slower": "slower",
    "same": "no real change",
    "unknown": "unknown",
}
TOO_FEW = "too few runs for an interval"
NOISE = "too noisy to tell: the interval is wider than the figure; measure on an idle machine"
WIDE = (
    "the interval is so wide that only large changes would show; "
    "measure with more --runs or on an idle machine"
)
_WIDE = 1.2
"""High over low. Chosen: a change of a fifth is one that people look for, and such an interval may
hide it."""
NO_CONTROL = (
    "eager mode was not measured in both runs, so this may be a change of the machine itself"
)
NOISY_CONTROL = "eager mode's own figures vary too much to rule out that the machine itself changed"


class Change(msgspec.Struct, frozen=True):
    """How many times as fast as before: above 1 is faster. No interval: too few runs."""

    value: float
    ci: Interval | None = None

    @property
    def too_noisy(self) -> bool:
        return too_wide(self.value, self.ci)


class BenchmarkChange(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one backend, in both runs."""

    model: str
    backend: str
    mode: str
    device: str
    dtype: str
    batch: int
    small: bool
    verdict: Verdict
    reason: str = ""
    """Why it is unknown, or how little `no real change` says."""
    by: Literal["latency", "speedup"] = "latency"
    """What it was judged by: `speedup` where eager mode changed too."""
    latency: Change | None = None
    """The earlier median over the later one."""
    speedup: Change | None = None
    """The later speed-up over eager mode over the earlier one."""
    eager: Change | None = None
    """As `latency`, of eager mode."""
    before: Benchmark
    after: Benchmark

    @property
    def judged(self) -> Change | None:
        return self.speedup if self.by == "speedup" else self.latency


class BenchmarkComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two benchmark runs."""

    before: str
    after: str
    torch: tuple[str | None, str | None]
    commands: tuple[tuple[str, ...], tuple[str, ...]]
    differences: tuple[str, ...]
    """Of the machines and settings, in sentences."""
    benchmarks: tuple[BenchmarkChange, ...]
    removed: tuple[str, ...]
    """Only in the earlier run: `bert on inductor`."""
    added: tuple[str, ...]


def compare_benchmarks(before: Run, after: Run, names: tuple[str, str]) -> BenchmarkComparison:
    old, new = _by_key(benchmarks(before)), _by_key(benchmarks(after))
    changes = benchmark_changes(old.values(), new.values())
    return BenchmarkComparison(
        before=names[0],
        after=names[1],
        torch=(before.torch_version, after.torch_version),
        commands=(before.header.command, after.header.command),
        differences=(*machines_differ(before, after), *_settings_differ(changes)),
        benchmarks=tuple(changes),
        removed=tuple(row_name(row) for key, row in old.items() if key not in new),
        added=tuple(row_name(row) for key, row in new.items() if key not in old),
    )


def benchmark_changes(
    before: Iterable[Benchmark], after: Iterable[Benchmark]
) -> list[BenchmarkChange]:
    """Of those that are in both."""
    old, new = _by_key(before), _by_key(after)
    both = [key for key in new if key in old]
    # Each backend of a model has the same control, and an interval takes its time.
    controls = {
        setup: _latency(old[setup, backend], new[setup, backend])
        for setup, backend in both
        if backend == EAGER
    }
    return [_change(old, new, key, controls.get(key[0])) for key in both]


def row_name(row: Benchmark) -> str:
    return f"{row.model} on {row.backend}"


_Key = tuple[Setup, str]


def _by_key(rows: Iterable[Benchmark]) -> dict[_Key, Benchmark]:
    return {(setup_of(row), row.backend): row for row in rows}


def _change(
    old: dict[_Key, Benchmark], new: dict[_Key, Benchmark], key: _Key, control: Change | None
) -> BenchmarkChange:
    setup, backend = key
    before, after = old[key], new[key]
    latency = control if backend == EAGER else _latency(before, after)
    eager, speedup = None, None
    if backend != EAGER and control is not None:
        eager = control
        speedup = _speedup((old[setup, EAGER], before), (new[setup, EAGER], after))
    drifted = eager is not None and effect(eager.ci) in ("faster", "slower")
    found = BenchmarkChange(
        **setup._asdict(),
        backend=backend,
        verdict="unknown",
        by="speedup" if drifted else "latency",
        latency=latency,
        speedup=speedup,
        eager=eager,
        before=before,
        after=after,
    )
    verdict, reason = _verdict(found)
    return msgspec.structs.replace(found, verdict=verdict, reason=reason)


def _latency(before: Benchmark, after: Benchmark) -> Change | None:
    found = ratio(before.runs_ms, after.runs_ms, paired=False)
    if found is None:
        return None
    known = found.low is not None and found.high is not None
    return Change(found.value, (found.low, found.high) if known else None)  # type: ignore[arg-type]


def _speedup(
    before: tuple[Benchmark, Benchmark], after: tuple[Benchmark, Benchmark]
) -> Change | None:
    """Of eager mode and a backend, earlier and later. Each run's speed-up has an interval of its
    own; their distances from the value add in squares on a log scale, each end by itself."""
    old, new = (ratio(eager.runs_ms, row.runs_ms, paired=True) for eager, row in (before, after))
    if old is None or new is None:
        return None
    value = new.value / old.value
    if old.low is None or old.high is None or new.low is None or new.high is None:
        return Change(value)
    below = math.hypot(math.log(new.value / new.low), math.log(old.high / old.value))
    above = math.hypot(math.log(new.high / new.value), math.log(old.value / old.low))
    return Change(value, (value * math.exp(-below), value * math.exp(above)))


def _verdict(found: BenchmarkChange) -> tuple[Verdict, str]:
    for row, which in ((found.before, "earlier"), (found.after, "later")):
        if found.latency is None and not any(row.runs_ms):
            return "unknown", f"no figures in the {which} run" + (row.error and f": {row.error}")
    judged = found.judged
    if judged is None or judged.ci is None:
        return "unknown", TOO_FEW
    seen = effect(judged.ci)
    if seen == "same" and judged.too_noisy:
        return "unknown", NOISE
    if seen == "same":
        return _VERDICTS[seen], WIDE if judged.ci[1] > _WIDE * judged.ci[0] else ""
    if found.backend == EAGER or found.by == "speedup":
        return _VERDICTS[seen], ""
    if found.eager is None:
        return "unknown", NO_CONTROL
    if found.speedup is None or effect(found.speedup.ci) != seen:
        return "unknown", NOISY_CONTROL
    return _VERDICTS[seen], ""


_OF_MACHINE = ("cpu", "cores", "threads", "accelerators", "torch", "python")


def machines_differ(before: Run, after: Run) -> list[str]:
    old, new = (next(iter(machines(run)), None) for run in (before, after))
    if old is None or new is None:
        return ["One of the runs does not say which machine it was made on."]
    told = [
        f"{_word(name)}: {_of(old, name)} before, {_of(new, name)} after"
        for name in _OF_MACHINE
        if getattr(old, name) != getattr(new, name)
    ]
    if not told:
        return []
    return [f"The runs differ in {'; '.join(told)}."]


def _word(name: str) -> str:
    return {"cpu": "CPU", "python": "Python", "accelerators": "accelerator"}.get(name, name)


def _of(machine: Machine, name: str) -> str:
    value = getattr(machine, name)
    text = ", ".join(value) if isinstance(value, tuple) else str(value if value is not None else "")
    return text or ("none" if name in ("accelerators", "torch") else "unknown")


def _settings_differ(changes: list[BenchmarkChange]) -> list[str]:
    """What is not part of what makes two rows comparable."""
    pairs = {
        (each.before.compile_mode or "default", each.after.compile_mode or "default")
        for each in changes
        if each.backend != EAGER and each.before.compile_mode != each.after.compile_mode
    }
    return [f"torch.compile had mode {old} before and {new} after." for old, new in sorted(pairs)]


# Benchmarks over time: what was measured of one model on one backend, run after run.
#
# Figures of different machines are never joined: they are series of their own.


class MeasuredRow(NamedTuple):
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
    hardware: _Hardware
    points: tuple[MeasuredRow, ...]
    """Oldest first."""
    change: BenchmarkChange | None
    """From the last but one to the last; None where there is but one, or where it is not known
    that both were measured on the same machine."""


def _hardware_of(machine: Machine | None) -> _Hardware:
    if machine is None or not (machine.cpu or machine.accelerators):
        return None
    return machine.cpu, machine.cores, machine.threads, machine.accelerators


def benchmark_history(runs: Sequence[Run]) -> list[Series]:
    """By model, in the order of the newest run; eager mode first, then the other backends."""
    ordered = sorted(runs, key=lambda run: run.header.started_ns)
    found: dict[tuple[Setup, str, str, _Hardware], list[MeasuredRow]] = {}
    rows: dict[str, list[Benchmark]] = {}
    for run in ordered:
        name = run.header.run
        machine = next(iter(machines(run)), None)
        rows[name] = benchmarks(run)
        for row in rows[name]:
            key = (setup_of(row), row.backend, row.compile_mode, _hardware_of(machine))
            found.setdefault(key, []).append(MeasuredRow(name, run.header.started_ns, machine, row))
    changes = _RunPairs(rows)
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


class _RunPairs:
    """Each pair of runs is compared once: an interval takes its time."""

    def __init__(self, rows: dict[str, list[Benchmark]]) -> None:
        self._rows = rows
        self._known: dict[tuple[str, str], list[BenchmarkChange]] = {}

    def last(self, points: Sequence[MeasuredRow]) -> BenchmarkChange | None:
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
