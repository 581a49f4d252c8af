"""What was measured of one model on one backend, and the figures that are made of it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from compilescope.analysis.intervals import Ratio, Summary, ratio, summarize
from compilescope.bench.protocol import EAGER, Examination, Spec
from compilescope.model.benchmark import Benchmark, Interval

_NOISY = 0.2
"""An interval wider than this share of the median deserves a word. Chosen: a backend that is a
fifth faster would not show. docs/guides/bench.md says it to users."""


@dataclass
class Track:
    """A backend's raw figures; it grows as they are measured."""

    spec: Spec
    planned: int
    """Runs in all processes together."""
    parameters: int | None = None
    batch: int | None = None
    calls: int = 1
    firsts: list[float] = field(default_factory=list)
    """Seconds of the first call, for each process that has a row."""
    rows: list[list[float]] = field(default_factory=list)
    peak: int | None = None
    seen: Examination | None = None
    error: str = ""
    dropped: bool = False
    """A process of it failed: no other is started."""
    notes: list[str] = field(default_factory=list)

    @property
    def backend(self) -> str:
        return self.spec.backend

    @property
    def runs(self) -> list[list[float]]:
        return [row for row in self.rows if row]

    @property
    def done(self) -> int:
        return sum(map(len, self.rows))


def benchmark(track: Track, base: Track | None, *, stopped: bool = False) -> Benchmark:
    """`base` is eager mode, measured in the same rounds."""
    spec = track.spec
    found = summarize(track.runs)
    seen = track.seen or Examination()
    error = track.error
    if found is None and not error:
        error = "Stopped before it was measured." if stopped else "Nothing was measured."
    quotient = _speedup(track, base)
    compiled = track.backend != EAGER
    batch = track.batch or (base.batch if base is not None else None) or spec.batch or 1
    return Benchmark(
        model=spec.model,
        backend=track.backend,
        mode=spec.mode,
        device=spec.device,
        dtype=spec.dtype,
        batch=batch,
        small=spec.small,
        compile_mode=spec.compile_mode,
        parameters=track.parameters if base is None else track.parameters or base.parameters,
        compile_seconds=_compile_seconds(track, cold=True) if compiled else None,
        warm_compile_seconds=_compile_seconds(track, cold=False) if compiled else None,
        runs_ms=tuple(tuple(row) for row in track.runs),
        calls=track.calls,
        latency_ms=found.median if found else None,
        latency_mean_ms=found.mean if found else None,
        latency_std_ms=found.std if found else None,
        latency_p90_ms=found.p90 if found else None,
        latency_ci_ms=found.ci if found else None,
        outliers=found.outliers if found else 0,
        throughput=1000 * batch / found.median if found else None,
        peak_bytes=track.peak,
        graphs=seen.graphs,
        breaks=seen.breaks,
        recompiles=seen.recompiles,
        violations=seen.violations,
        constraints=spec.constraints,
        kerneldiff=seen.kerneldiff,
        speedup=quotient.value if quotient else None,
        speedup_ci=_interval(quotient),
        error=error,
        notes=tuple(dict.fromkeys([*_notes(track, found, stopped), *track.notes, *seen.notes])),
    )


def _speedup(track: Track, base: Track | None) -> Ratio | None:
    if track.backend == EAGER:
        return Ratio(1.0, 1.0, 1.0) if track.runs else None
    return None if base is None else ratio(base.rows, track.rows, paired=True)


def _interval(quotient: Ratio | None) -> Interval | None:
    if quotient is None or quotient.low is None or quotient.high is None:
        return None
    return quotient.low, quotient.high


def _compile_seconds(track: Track, *, cold: bool) -> float | None:
    """The first call beyond a usual one: of the first process, or the median of the later ones."""
    both = list(zip(track.firsts, track.rows, strict=False))
    beyond = [
        max(0.0, first - statistics.median(row) / 1000)
        for first, row in (both[:1] if cold else both[1:])
        if row
    ]
    return statistics.median(beyond) if beyond else None


def _notes(track: Track, found: Summary | None, stopped: bool) -> list[str]:
    notes = []
    if stopped and found is not None and track.done < track.planned:
        notes.append(f"Stopped early: {track.done} of {track.planned} runs.")
    if found is not None and found.ci is not None:
        low, high = found.ci
        if high - low > _NOISY * found.median:
            notes.append("Noisy: the interval is wider than 20 % of the median.")
    return notes
