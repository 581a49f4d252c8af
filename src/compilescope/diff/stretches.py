"""The pass over a pair in torch's own operations, a stretch at a time.

It works for every dtype and device, and is what the fused kernel is held against.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from compilescope.diff.config import Tolerance
from compilescope.diff.numbers import Numbers
from compilescope.diff.pairs import Pair, stretches
from compilescope.diff.tally import POSITIONS, Profile, Tally

_STRETCH = 1 << 14
"""Small enough for torch to use one thread: starting several costs more than they save."""
_STRETCH_ON_DEVICE = 1 << 20


@dataclass(frozen=True)
class Rules:
    """What every stretch needs to know."""

    tolerance: Tolerance
    equal_nan: bool
    worst: int
    bins: int


def walk(pair: Pair, rules: Rules) -> Tally:
    """All of the pair."""
    tally = Tally(profiles=[Profile.empty(size, rules.bins) for size in pair.shape])
    if pair.reference.numel() == 0:
        return tally
    most = _STRETCH if pair.reference.device.type == "cpu" else _STRETCH_ON_DEVICE
    for place, box in stretches(pair.shape, most):
        part = Numbers.of(pair, *pair.stretch(box))
        bad = part.disagreeing(rules.equal_nan)
        limit = rules.tolerance.atol + rules.tolerance.rtol * part.magnitude
        wrong = (part.finite & part.unequal & (part.errors > limit)) | bad
        tally.merge(_tally(part, bad, wrong, place, rules.worst), rules.worst)
        _profile(tally, part.errors, wrong, box)
    return tally


def rescale(pair: Pair, tally: Tally) -> None:
    """Makes the squares once more, of numbers that are neither too large nor too small for it."""
    largest = max(tally.max_abs, tally.largest_reference)
    if not tally.is_out_of_range or not math.isfinite(largest):
        return
    tally.scale = 2.0 ** -min(max(math.frexp(largest)[1], -1000), 1000)
    tally.dot = tally.square_reference = tally.square_test = tally.sum_square = 0.0
    for _, box in stretches(pair.shape, _STRETCH):
        part = Numbers.of(pair, *pair.stretch(box))
        for name, value in part.products(tally.scale).items():
            setattr(tally, name, getattr(tally, name) + value)
        tally.sum_square += float((part.errors * tally.scale).square().sum())


def _tally(part: Numbers, bad: torch.Tensor, wrong: torch.Tensor, place: int, keep: int) -> Tally:
    finite, errors = part.finite, part.errors
    nonzero = finite & (part.magnitude > 0)
    relative = torch.where(nonzero, errors / part.magnitude.where(nonzero, 1.0), 0.0)
    found = Tally(
        count=errors.numel(),
        finite=int(finite.sum()),
        differing=int(((finite & part.unequal) | bad).sum()),
        mismatched=int(wrong.sum()),
        sum_abs=float(errors.sum()),
        sum_square=float((errors * errors).sum()),
        max_abs=float(errors.max()),
        sum_rel=float(relative.sum()),
        max_rel=float(relative.max()),
        relative=int(nonzero.sum()),
        appeared=int((finite & ~nonzero & part.unequal).sum()),
        disagreeing=int(bad.sum()),
        largest_reference=float(part.magnitude.max()),
        **part.products(),
        **part.ulps(),
        **part.odd_ones(),
    )
    found.worst = _largest(errors.masked_fill(bad, torch.inf), place, keep)
    top = _largest(relative, place, 1)
    found.worst_relative = top[0] if top else None
    if found.finite < found.count:
        found.disagreements = _first(bad, place)
        found.nonfinite = _first(~finite, place)
    return found


def _largest(errors: torch.Tensor, place: int, keep: int) -> list[tuple[float, int]]:
    """The largest above 0; of equal ones the first, whatever the order of the sort was."""
    if not keep:
        return []
    least = torch.topk(errors, min(keep, errors.numel())).values[-1]
    above = (errors > least).nonzero().flatten()
    level = ((errors == least) & (least > 0)).nonzero().flatten()[: keep - above.numel()]
    chosen = torch.cat([above, level])
    return [
        (error, place + at)
        for error, at in zip(errors[chosen].tolist(), chosen.tolist(), strict=True)
    ]


def _first(flags: torch.Tensor, place: int) -> list[int]:
    return [place + at for at in flags.nonzero().flatten()[:POSITIONS].tolist()]


def _profile(
    tally: Tally, errors: torch.Tensor, wrong: torch.Tensor, box: tuple[slice, ...]
) -> None:
    sizes = [part.stop - part.start for part in box]
    errors, wrong = errors.view(sizes), wrong.view(sizes).to(torch.float64)
    for dim, (part, profile) in enumerate(zip(box, tally.profiles, strict=True)):
        others = [other for other in range(len(sizes)) if other != dim]
        total, largest, mismatched = (
            (errors.sum(others), errors.amax(others), wrong.sum(others))
            if others
            else (errors, errors, wrong)
        )
        at = torch.arange(part.start, part.stop, device=errors.device) // profile.width
        first, last = int(at[0]), int(at[-1]) + 1
        empty = errors.new_zeros(last - first)
        found = Profile(
            profile.size,
            empty.index_add(0, at - first, total).tolist(),
            empty.scatter_reduce(0, at - first, largest, "amax").tolist(),
            [int(n) for n in empty.index_add(0, at - first, mismatched).tolist()],
        )
        profile.add(first, found)
