"""How long two versions take: run by turns, so that what the machine does else meets both alike."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence

from compilescope.model.bodies import RegionTime
from compilescope.model.fix_search import Spread, Timed, Times
from compilescope.repair.trials.recorded_runs import CapturedRun
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.workbench import Workbench

NEVER_WARM = "no compiled region is called again after it is compiled"


def measure(bench: Workbench, before: Version, after: Version, *, rounds: int = 3) -> Times:
    """Both by turns, each time with empty caches for what is compiled."""
    seen: tuple[list[CapturedRun], list[CapturedRun]] = ([], [])
    for _ in range(rounds):
        for version, runs in zip((before, after), seen, strict=True):
            with tempfile.TemporaryDirectory(prefix="compilescope-") as cache:
                fresh = {"TORCHINDUCTOR_CACHE_DIR": cache}
                run = bench.watch(version, timed=True, environment=fresh)
            if run.timed_out:
                return Times(reason=f"it did not finish within {bench.limit_s:g} s")
            runs.append(run)
        if all(_steady_s(run) is None for runs in seen for run in runs):
            break  # Another round would show no more.
    old, new = (_timed(runs) for runs in seen)
    reason = ""
    if old.steady is None or new.steady is None:
        reason = NEVER_WARM
    return Times(old, new, reason, imports=bool(bench.cold))


def _timed(runs: Sequence[CapturedRun]) -> Timed:
    steady = [_steady_s(run) for run in runs]
    first = [_warmup_s(run) for run in runs]
    return Timed(
        steady=_spread([s for s in steady if s is not None]),
        first=_spread([s for s in first if s is not None]),
        whole=_spread([run.seconds for run in runs]),
    )


def _steady_s(run: CapturedRun) -> float | None:
    """A warm call of each region, summed."""
    calls: dict[object, list[int]] = {}
    for _, body in run.run.of(RegionTime):
        total = calls.setdefault(body.region, [0, 0])
        total[0] += body.calls
        total[1] += body.total_ns
    warm = [ns / count / 1e9 for count, ns in calls.values() if count]
    return sum(warm) if warm else None


def _warmup_s(run: CapturedRun) -> float | None:
    """All calls during which something was compiled."""
    times = [body.warmup_ns for _, body in run.run.of(RegionTime) if body.warmup_calls]
    return sum(times) / 1e9 if times else None


def _spread(seconds: list[float]) -> Spread | None:
    if not seconds:
        return None
    return Spread(statistics.median(seconds), min(seconds), max(seconds), len(seconds))
