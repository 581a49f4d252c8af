"""Is the float64 run a run of the same program? It may have taken another branch somewhere.

A result in float64 that is far from the reference's is only believed where the reference itself
answers to the smallest change of its inputs with as large a change: then all is rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from compilescope.diff.trial import Outcome

_FAR = 32.0
"""Times the square root of the unit in the last place."""
_FARTHEST = 0.3
_WIDE_GROWTH, _NARROW_GROWTH = 100.0, 30.0
"""Times the answer to the smallest change: the rounding errors of all operations together."""


def believed(
    reference: Outcome, exact: Outcome, nudged: Callable[[], Outcome]
) -> tuple[Outcome, list[str]]:
    """The float64 run without the values that are not believed, and their paths."""
    doubted: list[str] = []
    other: Outcome | None = None
    for path, value in reference.values.items():
        known = exact.values.get(path)
        apart = relative_distance(value.leaf, known.leaf) if known is not None else None
        if apart is None or apart <= _limit(value.leaf.dtype):
            continue
        other = other or nudged()
        answer = other.values.get(path)
        moved = relative_distance(value.leaf, answer.leaf) if answer is not None else None
        wide = torch.finfo(value.leaf.dtype).eps < 1e-4
        growth = _WIDE_GROWTH if wide else _NARROW_GROWTH
        if moved is None or apart > growth * moved:
            doubted.append(path)
    kept = {path: value for path, value in exact.values.items() if path not in doubted}
    return replace(exact, values=kept), doubted


def relative_distance(one: Any, other: Any) -> float | None:
    """Of the whole, among numbers that are finite on both sides; None where there are none."""
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return None
    if not one.is_floating_point() or one.shape != other.shape or not one.numel():
        return None
    if one.layout is not torch.strided or other.layout is not torch.strided:
        return None
    if one.is_quantized or other.is_quantized or one.is_nested or one.device.type == "meta":
        return None
    ours, theirs = one.to(torch.float64), other.to(torch.float64)
    finite = ours.isfinite() & theirs.isfinite()
    size = ours[finite].norm()
    apart = (ours - theirs)[finite].norm()
    return float(apart / size) if float(size) else None


def _limit(dtype: torch.dtype) -> float:
    return min(_FARTHEST, _FAR * math.sqrt(torch.finfo(dtype).eps))
