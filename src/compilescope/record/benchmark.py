"""Bodies of a benchmark: one model on one backend, and the machine that it was measured on."""

from typing import Literal

import msgspec

from compilescope.record.body import EventBody

Interval = tuple[float, float]
"""Low and high: a 95 % confidence interval."""


def too_wide(value: float | None, interval: Interval | None) -> bool:
    """Return whether the interval is wider than the figure itself; False without an interval."""
    if value is None or interval is None:
        return False
    low, high = interval
    return not high - low <= value


class Benchmark(EventBody, frozen=True, kw_only=True):
    """A model on one backend. None: not measured, not known, or without a meaning there."""

    model: str
    backend: str
    """`eager` is the model without torch.compile."""
    mode: Literal["inference", "training"] = "inference"
    device: str = "cpu"
    dtype: str = "float32"
    batch: int = 1
    small: bool = False
    """The model's small form."""
    compile_mode: str = ""
    """The `mode` given to torch.compile; empty: torch's default."""
    parameters: int | None = None
    compile_seconds: float | None = None
    """Until the first call returned, with empty caches on disk, beyond what a later call takes."""
    warm_compile_seconds: float | None = None
    """The same in a new process that finds the caches of the first."""
    runs_ms: tuple[tuple[float, ...], ...] = ()
    """A row for each process, a figure for each run. Run n of a process was taken in the same round
    as run n of that process of every other backend of this model."""
    calls: int = 1
    """How many calls a run is the mean of."""
    latency_ms: float | None = None
    """The median of all runs."""
    latency_mean_ms: float | None = None
    latency_std_ms: float | None = None
    latency_p90_ms: float | None = None
    latency_ci_ms: Interval | None = None
    """Of the median."""
    outliers: int = 0
    """Runs far from the others; they count like the others."""
    throughput: float | None = None
    """Samples a second: the batch over the median."""
    peak_bytes: int | None = None
    """The most memory in tensors at any moment of a call, weights included."""
    graphs: int | None = None
    breaks: int | None = None
    """Places in the source where a graph broke."""
    recompiles: int | None = None
    violations: int | None = None
    """Of the device's constraints; None where no device was named."""
    constraints: str = ""
    """That device."""
    kerneldiff: Literal["", "pass", "fail", "unknown"] = ""
    """Do its numbers agree with eager mode's? Empty: not asked."""
    speedup: float | None = None
    """Eager mode's median over this one."""
    speedup_ci: Interval | None = None
    too_noisy: bool = False
    """Its latency, eager mode's or the speed-up has an interval wider than the figure, so there is
    no speed-up."""
    error: str = ""
    """Why there are no figures, in a sentence."""
    notes: tuple[str, ...] = ()
    """What a reader must know of the figures: interrupted, fewer runs, noisy."""

    @property
    def noisy_latency(self) -> bool:
        return too_wide(self.latency_ms, self.latency_ci_ms)


class Machine(EventBody, frozen=True, kw_only=True):
    """A machine that took part: a benchmark's own, or a node of a sweep."""

    name: str
    cpu: str = ""
    cores: int | None = None
    threads: int | None = None
    """That torch uses for one operation."""
    memory_bytes: int | None = None
    accelerators: tuple[str, ...] = ()
    python: str = ""
    torch: str = ""
    """Empty: there is none."""
    packages: dict[str, str] = msgspec.field(default_factory=dict)
    """Versions of others that matter: transformers, triton."""
    problem: str = ""
    """Why it took no part, or how it differs from the others, in a sentence."""
