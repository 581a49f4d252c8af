"""What a step would be shorter by without a cause: what its removal leaves of each piece of the
host's and the device's time, played again.

What nobody can know from a trace is taken to be gone: the estimate is an upper bound there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from compilescope.knowledge.profiles.calls import device_work
from compilescope.knowledge.profiles.kernel_rows import SHORT_US, Roof
from compilescope.knowledge.profiles.replay import StepReplay
from compilescope.knowledge.profiles.trace import TraceSpan

HALF = 0.5
"""Of the time in float64: float32 has half of the bytes, and a register holds twice as many."""
_USUAL_PYTHON_US = 20.0
"""Chosen: a longer piece of Python is more than what stands around any call."""
_FUSED_OPTIMIZER = 0.35
"""Adam reads and writes seven tensors at once, operator by operator some twenty."""
_TF32 = 0.125
"""Of an A100's products, and about an H200's."""


def savings(
    replay: StepReplay,
    host: Sequence[str | None],
    device: Sequence[str | None],
    left: Sequence[float],
    least: float,
) -> dict[str, float]:
    """Of a step, by cause, in microseconds; `host` and `device`: the cause of each piece and kernel
    of the replay; `left`: of each kernel, without its cause. Causes with less than `least` to take
    away save nothing."""
    pieces: dict[str, dict[int, float]] = defaultdict(dict)
    works: dict[str, dict[int, float]] = defaultdict(dict)
    for index, cause in enumerate(host):
        if cause in ("float64", "tf32", None):
            continue  # Another kernel is launched instead.
        pieces[cause][index] = 0.0
    for index, part in _usual_python(replay, pieces.get("python", {})):
        pieces["python"][index] = part
    for index, cause in enumerate(device):
        if cause is not None:
            works[cause][index] = left[index]
    found = {}
    for cause in {**pieces, **works}:
        at, of = pieces.get(cause, {}), works.get(cause, {})
        most = sum(replay.pieces[index].us * (1 - part) for index, part in at.items())
        most += sum(replay.kernels[index].duration * (1 - part) for index, part in of.items())
        if most >= least * replay.steps:
            found[cause] = max(replay.step_us - replay.without(at, of), 0.0)
    return found


def _usual_python(replay: StepReplay, own: dict[int, float]) -> Iterator[tuple[int, float]]:
    """Some Python stands around every call; what is longer can go."""
    if not own:
        return
    usual = min(median(replay.pieces[index].us for index in own), _USUAL_PYTHON_US)
    for index in own:
        us = replay.pieces[index].us
        yield index, min(usual / us, 1.0) if us else 1.0


def left_of_kernels(
    kernels: Sequence[TraceSpan],
    causes: Sequence[str | None],
    roof: Roof | None,
    matmul_precision: str,
) -> list[float]:
    """The share of each kernel's time that stays without its cause."""
    found = []
    for span, cause in zip(kernels, causes, strict=True):
        product = device_work(span) == "library"
        if cause in ("float64", "tf32"):
            part = _of_precision(cause, product, roof, matmul_precision)
        elif cause == "uncompiled":
            part = 1.0 if product else 0.0  # Compiled code calls the same libraries.
        elif cause == "optimizer":
            whole = "Fused" in span.name or span.name.startswith("triton_")
            part = 1.0 if whole else _FUSED_OPTIMIZER if span.duration > SHORT_US else 0.0
        else:
            part = 0.0
        found.append(part)
    for index in _longest_of_runs(kernels, causes, found):
        found[index] = 1.0
    return found


def _of_precision(cause: str, product: bool, roof: Roof | None, matmul_precision: str) -> float:
    if not product:
        return HALF
    rates = roof.flops_per_second if roof is not None else {}
    precision = matmul_precision if cause == "float64" else "high"
    before = rates.get("float64" if cause == "float64" else "float32")
    after = roof.best(("float32",), precision) if roof is not None else None
    if before and after:
        return min(before / after, 1.0)
    return HALF if cause == "float64" else _TF32


def _longest_of_runs(
    kernels: Sequence[TraceSpan], causes: Sequence[str | None], left: Sequence[float]
) -> Iterator[int]:
    """Operators one after the other become one kernel, which takes as long as the longest of them:
    it reads and writes as much."""
    run: list[int] = []
    for index, cause in [*enumerate(causes), (len(causes), None)]:
        if cause == "uncompiled" and not left[index]:
            run.append(index)
            continue
        if run:
            yield max(run, key=lambda each: kernels[each].duration)
            run = []
