"""The pass over a pair of tensors: all figures from reading every element once, chunk by chunk.

By torch's own operations, so it works for every dtype and device; `native_pass` must add up the
same tally, which a test checks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from compilescope.measure.tensors.pairs import ChunkNumbers, TensorPair, chunks
from compilescope.measure.tensors.tolerances import Tolerance

_CHUNK = 1 << 14
"""Half of torch's GRAIN_SIZE (ATen/TensorIterator.h: 32768), below which it uses one thread:
starting several costs more than they save."""
_CHUNK_ON_DEVICE = 1 << 20
"""Chosen: a device is started for every operation on a chunk, so few large ones; what is held
beside the tensors stays some dozens of megabytes."""


@dataclass(frozen=True)
class Rules:
    """What every chunk is compared by."""

    tolerance: Tolerance
    equal_nan: bool
    worst: int
    bins: int


def walk(pair: TensorPair, rules: Rules) -> ErrorTally:
    """All of the pair."""
    tally = ErrorTally(profiles=[Profile.empty(size, rules.bins) for size in pair.shape])
    if pair.reference.numel() == 0:
        return tally
    most = _CHUNK if pair.reference.device.type == "cpu" else _CHUNK_ON_DEVICE
    for place, box in chunks(pair.shape, most):
        part = ChunkNumbers.of(pair, *pair.chunk(box))
        bad = part.disagreeing(rules.equal_nan)
        limit = rules.tolerance.atol + rules.tolerance.rtol * part.magnitude
        wrong = (part.finite & part.unequal & (part.errors > limit)) | bad
        tally.merge(_tally(part, bad, wrong, place, rules.worst), rules.worst)
        _profile(tally, part.errors, wrong, box)
    return tally


def rescale(pair: TensorPair, tally: ErrorTally) -> None:
    """Makes the squares once more, of numbers that are neither too large nor too small for it."""
    largest = max(tally.max_abs, tally.largest_reference)
    if not tally.is_out_of_range or not math.isfinite(largest):
        return
    tally.scale = 2.0 ** -min(max(math.frexp(largest)[1], -1000), 1000)
    tally.dot = tally.square_reference = tally.square_test = tally.sum_square = 0.0
    for _, box in chunks(pair.shape, _CHUNK):
        part = ChunkNumbers.of(pair, *pair.chunk(box))
        for name, value in part.products(tally.scale).items():
            setattr(tally, name, getattr(tally, name) + value)
        tally.sum_square += float((part.errors * tally.scale).square().sum())


def _tally(
    part: ChunkNumbers, bad: torch.Tensor, wrong: torch.Tensor, place: int, keep: int
) -> ErrorTally:
    finite, errors = part.finite, part.errors
    nonzero = finite & (part.magnitude > 0)
    relative = torch.where(nonzero, errors / part.magnitude.where(nonzero, 1.0), 0.0)
    found = ErrorTally(
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
    tally: ErrorTally, errors: torch.Tensor, wrong: torch.Tensor, box: tuple[slice, ...]
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


POSITIONS = 8
"""So many places of numbers that are not finite are kept. Chosen: what a report can name."""


@dataclass
class Profile:
    """The error along one dimension: one entry a place, or a chunk of places."""

    size: int
    total: list[float]
    """Sums of absolute errors."""
    largest: list[float]
    mismatched: list[int]
    width: int = 1
    """Places in an entry; the last may have fewer."""

    @classmethod
    def empty(cls, size: int, bins: int) -> Profile:
        width = max(-(-size // bins), 1)
        entries = -(-size // width)
        return cls(size, [0.0] * entries, [0.0] * entries, [0] * entries, width)

    def starts(self) -> list[int]:
        """Where each entry begins."""
        return [number * self.width for number in range(len(self.total))]

    def add(self, first: int, part: Profile) -> None:
        """Of the entries from `first` on."""
        for at, value in enumerate(part.total, first):
            self.total[at] += value
        for at, value in enumerate(part.largest, first):
            self.largest[at] = max(self.largest[at], value)
        for at, wrong in enumerate(part.mismatched, first):
            self.mismatched[at] += wrong


@dataclass
class ErrorTally:
    """Sums, counts and extremes. Errors are those of elements that are finite on both sides."""

    count: int = 0
    finite: int = 0
    """Finite on both sides."""
    differing: int = 0
    mismatched: int = 0
    """Outside the tolerance, or finite on one side only."""
    sum_abs: float = 0.0
    sum_square: float = 0.0
    max_abs: float = 0.0
    sum_rel: float = 0.0
    max_rel: float = 0.0
    relative: int = 0
    """Elements whose reference is not 0: only those have a relative error."""
    appeared: int = 0
    """Elements that are 0 in the reference only."""
    scale: float = 1.0
    """What numbers were multiplied by before they were squared."""
    dot: float = 0.0
    square_reference: float = 0.0
    square_test: float = 0.0
    largest_reference: float = 0.0
    sum_ulp: float = 0.0
    max_ulp: float = 0.0
    nan_reference: int = 0
    nan_test: int = 0
    nan_both: int = 0
    inf_reference: int = 0
    inf_test: int = 0
    inf_both: int = 0
    """Infinite on both sides, with one sign."""
    disagreeing: int = 0
    """Not finite on one side or both, and not the same."""
    worst: list[tuple[float, int]] = field(default_factory=list)
    """(error, place), largest first; infinite where one side is not finite."""
    worst_relative: tuple[float, int] | None = None
    disagreements: list[int] = field(default_factory=list)
    """The first places."""
    nonfinite: list[int] = field(default_factory=list)
    """The first places that are not finite on either side."""
    profiles: list[Profile] = field(default_factory=list)

    def merge(self, other: ErrorTally, keep: int) -> None:
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _LARGEST:
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        self.keep_worst(other.worst, keep)
        if other.worst_relative is not None:
            self.keep_relative(*other.worst_relative)
        self.disagreements = sorted([*self.disagreements, *other.disagreements])[:POSITIONS]
        self.nonfinite = sorted([*self.nonfinite, *other.nonfinite])[:POSITIONS]
        for mine, its in zip(self.profiles, other.profiles, strict=bool(other.profiles)):
            mine.add(0, its)

    def keep_worst(self, found: Sequence[tuple[float, int]], keep: int) -> None:
        self.worst = sorted([*self.worst, *found], key=lambda entry: (-entry[0], entry[1]))[:keep]

    def keep_relative(self, error: float, place: int) -> None:
        best = self.worst_relative
        if best is None or (-error, place) < (-best[0], best[1]):
            self.worst_relative = (error, place)

    def metrics(self, *, ulps: bool) -> dict[str, float]:
        """By name. A figure that there is no number for is left out."""
        found: dict[str, float] = {"elements": self.count}
        if self.finite:
            found["max_abs"] = self.max_abs
            found["mean_abs"] = self.sum_abs / self.finite
            found["rmse"] = math.sqrt(self.sum_square / self.finite) / self.scale
        if self.relative:
            found["max_rel"] = self.max_rel
            found["mean_rel"] = self.sum_rel / self.relative
        if ulps and self.finite:
            found["max_ulp"] = self.max_ulp
            found["mean_ulp"] = self.sum_ulp / self.finite
        cosine = self._cosine()
        if cosine is not None:
            found["cosine"] = cosine
        if self.count:
            found["mismatch_percentage"] = 100 * self.mismatched / self.count
        counts = {name: getattr(self, name) for name in _COUNTS}
        return {**found, **{name: float(value) for name, value in counts.items()}}

    @property
    def is_out_of_range(self) -> bool:
        """Were squares too large or too small for float64?"""
        squares = (self.sum_square, self.square_reference, self.square_test)
        largest = max(self.max_abs, self.largest_reference)
        return not all(map(math.isfinite, squares)) or 0 < largest < 1e-140

    def _cosine(self) -> float | None:
        if not self.finite:
            return None
        if self.square_reference == 0 and self.square_test == 0:
            return 1.0 if self.max_abs == 0 else None
        if self.square_reference == 0 or self.square_test == 0:
            return 0.0
        length = math.sqrt(self.square_reference) * math.sqrt(self.square_test)
        if not math.isfinite(length) or length == 0:
            return None
        return max(-1.0, min(1.0, self.dot / length))


_ADDED = (
    *("count", "finite", "differing", "mismatched", "sum_abs", "sum_square", "sum_rel"),
    *("relative", "appeared", "dot", "square_reference", "square_test", "sum_ulp"),
    *("nan_reference", "nan_test", "nan_both", "inf_reference", "inf_test", "inf_both"),
    "disagreeing",
)
_LARGEST = ("max_abs", "max_rel", "max_ulp", "largest_reference")
_COUNTS = (
    *("mismatched", "differing", "appeared", "nan_reference", "nan_test", "nan_both"),
    *("inf_reference", "inf_test", "inf_both", "disagreeing"),
)
