"""Is a difference wrong, or rounding? Both sides are compared with the same result in float64.

A test passes whose errors are like the reference's own, or as small as its dtype allows; it fails
where they are well beyond both; in between the verdict is "unknown". Three steps: `gather` measures
how far each side is from float64, in pools of elements; `pool_tests` says what rounding allows in
each pool; `judge` decides. docs/inside/numbers.md gives the reasons for the limits.

Errors are in units of a local scale: the root mean square of the exact numbers in the slice (row,
column, channel ...) that has the smallest one. So large rows do not hide what is wrong in small
ones, and numbers near 0 that come from large ones need not be exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from compilescope.measure.tensors.chunked_pass import ErrorTally, Rules
from compilescope.measure.tensors.native_pass import tally_of
from compilescope.measure.tensors.pairs import Incomparable, TensorPair, chunks, pair_up, shape_of
from compilescope.measure.tensors.tolerances import ComparisonConfig, summed_unit, unit_of
from compilescope.record.body import Verdict

_ENOUGH = 64
"""Elements in a pool whose mean error is steady: its standard error is then about 10 %."""


@dataclass(frozen=True)
class RoundingJudgement:
    """A verdict, why, and the figures that decided. Errors against float64 are in units of the
    local scale of the numbers; without a float64 result they are absolute."""

    verdict: Verdict
    reason: str
    reference_error: float | None = None
    """None: unknown."""
    test_error: float | None = None
    allowed: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def judge(
    reference: torch.Tensor,
    test: torch.Tensor,
    exact: torch.Tensor | None,
    config: ComparisonConfig | None = None,
    *,
    reduction: int | None = None,
) -> RoundingJudgement:
    """`reduction` is how many numbers were summed into one, where that is known."""
    config = config or ComparisonConfig()
    wanted, found = shape_of(reference), shape_of(test)
    if wanted != found:
        reason = f"its shape is {list(found)}, the reference's {list(wanted)}"
        return RoundingJudgement("fail", reason)
    try:
        pair = pair_up(reference, test)
    except Incomparable as error:
        return RoundingJudgement("unknown", str(error))
    tolerance = config.tolerance(pair.dtype, reduction)
    tally = tally_of(pair, Rules(tolerance, config.equal_nan, 0, 1), config)
    return judge_pair(pair, tally, exact, config, reduction=reduction)


def judge_pair(
    pair: TensorPair,
    tally: ErrorTally,
    exact: torch.Tensor | None,
    config: ComparisonConfig,
    *,
    reduction: int | None = None,
) -> RoundingJudgement:
    """The pair has been walked through: `tally` is what was found."""
    reduction = reduction or config.reduction
    if tally.count == 0:
        return RoundingJudgement("pass", "empty")
    if tally.differing == 0:
        return RoundingJudgement("pass", "equal", test_error=0.0, allowed=0.0)
    given = config.is_given(pair.dtype)
    plain = _by_tolerance(pair, tally, config, reduction)
    if given and plain.verdict == "pass":
        return plain
    anchor, why_not = _anchor(pair, exact)
    if anchor is None:
        wanted = plain.verdict == "unknown" or (exact is not None and plain.verdict == "fail")
        note = f"; {why_not}" if wanted else ""
        return RoundingJudgement(
            plain.verdict, plain.reason + note, None, plain.test_error, plain.allowed
        )
    if pair.kind == "int":
        return _by_flips(pair, anchor, tally)
    found = _by_evidence(gather(pair, anchor), pair.dtype, reduction)
    if found.verdict == "unknown" and given:
        return RoundingJudgement("fail", f"{plain.reason}; {found.reason}", *_figures(found))
    return found


def _figures(found: RoundingJudgement) -> tuple[float | None, float | None, float | None]:
    return found.reference_error, found.test_error, found.allowed


def _anchor(pair: TensorPair, exact: torch.Tensor | None) -> tuple[torch.Tensor | None, str]:
    if exact is None:
        return None, "there is no float64 result to show whether this is rounding"
    if pair.places is not None or exact.layout is not torch.strided or exact.is_nested:
        return None, "a sparse or nested tensor is not compared with float64"
    same = exact.dim() == len(pair.order)
    if not same or exact.permute(pair.order).shape != pair.reference.shape or exact.is_meta:
        return None, f"the float64 result has a different shape: {list(exact.shape)}"
    finer = pair.kind == "int" or unit_of(exact.dtype) < unit_of(pair.dtype) / 16
    if not finer:
        return None, f"a {exact.dtype} result is not precise enough to judge this one"
    return exact.detach().permute(pair.order).to(pair.reference.device), ""


def _by_tolerance(
    pair: TensorPair, tally: ErrorTally, config: ComparisonConfig, reduction: int | None
) -> RoundingJudgement:
    atol, rtol = config.tolerance(pair.dtype, reduction)
    percent = 100 * tally.mismatched / tally.count
    words = f"{tally.mismatched} of {tally.count} elements differ by more than {atol:.2g} + "
    words += f"{rtol:.2g} * |reference|; the largest difference is {tally.max_abs:.3g}"
    if not atol and not rtol:
        words = f"{tally.mismatched} of {tally.count} elements differ"
    error = tally.max_abs
    if tally.disagreeing:
        words = f"{tally.disagreeing} of {tally.count} elements are finite on one side only"
        return RoundingJudgement("fail", words, None, error, atol)
    if percent <= config.max_mismatch_percentage:
        if tally.mismatched:
            return RoundingJudgement(
                "pass", f"{words}; {percent:.3g} % is allowed", None, error, atol
            )
        words = f"all within {atol:.2g} + {rtol:.2g} * |reference|"
        return RoundingJudgement("pass", words, None, error, atol)
    # Without float64 nothing shows how much canceled: as much as surely fails with it.
    noise = _SURELY_LARGE * floors_of(pair.dtype, reduction).largest * tally.largest_reference
    if not config.is_given(pair.dtype) and error <= noise:
        words += ": possibly rounding, where large numbers cancel"
        return RoundingJudgement("unknown", words, None, error, noise)
    return RoundingJudgement("fail", words, None, error, atol)


def _by_flips(pair: TensorPair, exact: torch.Tensor, tally: ErrorTally) -> RoundingJudgement:
    """Whole numbers that come from rounded ones may flip; then the reference's do so too."""
    flips = [0, 0]
    for number, side in enumerate((pair.reference, pair.test)):
        # float64 does not hold every int64: what has one type is compared as it is.
        side = side.to(exact.device)
        wide = side if side.dtype == exact.dtype else side.to(torch.float64)
        flips[number] = int((wide != exact.to(wide.dtype)).sum())
    own, its = flips
    words = f"{tally.mismatched} of {tally.count} elements differ; {its} do not match float64"
    if not own:
        return RoundingJudgement("fail", words, 0.0, its / tally.count, 0.0)
    words += f"; {own} of the reference's do not match it either"
    # As many flips as the reference is luck; a few more may be luck too, above all of few.
    verdict: Verdict = "pass" if its <= own else "unknown" if its <= 4 * own + 4 else "fail"
    return RoundingJudgement(
        verdict, words, own / tally.count, its / tally.count, own / tally.count
    )


def _by_evidence(
    found: RoundingEvidence, dtype: torch.dtype, reduction: int | None
) -> RoundingJudgement:
    tests = list(pool_tests(found, dtype, reduction))
    worst = max(tests, key=lambda test: (test.ratio > 1, test.evidence, test.ratio))
    figures = (worst.reference, worst.test, worst.allowed)
    words = (
        f"compared with float64, the {worst.words} error is {worst.test:.2g} of the numbers' "
        f"scale (reference: {worst.reference:.2g}); rounding allows {worst.allowed:.2g}"
    )
    if found.lost:
        words = f"not finite at {found.lost} of {found.whole.count + found.lost} places where the "
        return RoundingJudgement("fail", f"{words}reference and float64 are", *figures)
    if found.strange:
        words = f"matches neither the reference nor float64 at {found.strange} places"
        return RoundingJudgement("fail", f"{words} that are not finite", *figures)
    if worst.evidence > 1:
        return RoundingJudgement("fail", words, *figures)
    if found.odd:
        words = f"not finite on either side at {found.odd} places, in different ways, where float64"
        return RoundingJudgement("unknown", f"{words} is", *figures)
    if worst.ratio > 1:
        return RoundingJudgement("unknown", f"inconclusive: {words}", *figures)
    if found.whole.test_rms < found.whole.reference_rms:
        words += "; it is closer to float64 than the reference"
    if found.overflowed:
        words += f"; the reference is not finite at {found.overflowed} places where float64 is"
    return RoundingJudgement("pass", words, *figures)


_CHUNK = 1 << 14
"""As in `chunked_pass`: one thread of torch's."""
_LEAST_IN_SLICE = 16
"""A slice of fewer numbers says little of its scale: the root mean square of 16 random numbers is
off by a sixth (one in the root of 32)."""
_MOST_SLICES = 1 << 16
"""Along one dimension. Chosen: memory beside the tensors stays bounded, at some numbers a slice."""
LOWEST, HIGHEST = -40, 23
"""Binary exponents of |exact| / scale that get a pool of their own; what is 0 joins the lowest.
Below 2**-40 no number counts beside float32's floor near 0 (2**-23); above 2**23 float32 has no
room."""
_POOLS = HIGHEST - LOWEST + 1


@dataclass
class Pool:
    """Errors of both sides over the same elements."""

    count: int
    size: float
    """Root mean square of |exact| / scale."""
    reference_max: float
    test_max: float
    reference_rms: float
    test_rms: float


@dataclass
class RoundingEvidence:
    """All pools; and what is not finite."""

    whole: Pool
    by_size: dict[int, Pool]
    """By the binary exponent of |exact| / scale."""
    slices: list[Pool]
    """For each dimension the worst slice of either side, as one pool."""
    lost: int
    """Not finite in the test, though finite in the reference and exactly."""
    odd: int
    """Not finite in reference and test, in different ways, though finite exactly."""
    overflowed: int
    """Not finite in the reference only."""
    strange: int
    """Otherwise not what the reference or the exact result is."""


def gather(pair: TensorPair, exact: torch.Tensor) -> RoundingEvidence:
    """`exact` has the pair's shape and its order of dimensions."""
    scales = _scales(pair, exact)
    tally = _Pools(pair.shape, [dim for dim, _ in scales.by_dim], exact.device)
    for _, box in chunks(pair.shape, _CHUNK):
        tally.add(box, pair.reference[box], pair.test[box], exact[box], scales.of(box))
    return tally.evidence()


@dataclass
class _Scales:
    overall: float
    by_dim: list[tuple[int, torch.Tensor]]
    rank: int

    def of(self, box: Sequence[slice]) -> torch.Tensor | float:
        """For each element of a box, in a shape that broadcasts to it."""
        found: torch.Tensor | float = self.overall
        for dim, values in self.by_dim:
            shape = [1] * self.rank
            shape[dim] = -1
            here = values[box[dim]].view(shape)
            found = here if isinstance(found, float) else torch.minimum(found, here)
        return found


def _scales(pair: TensorPair, exact: torch.Tensor) -> _Scales:
    shape, count = pair.shape, exact.numel()
    dims = [
        dim
        for dim, size in enumerate(shape)
        if 1 < size <= _MOST_SLICES and count // size >= _LEAST_IN_SLICE
    ]
    sums = [torch.zeros(shape[dim], dtype=torch.float64, device=exact.device) for dim in dims]
    total = 0.0
    for _, box in chunks(shape, _CHUNK):
        square = exact[box].abs().to(torch.float64).square()
        square = torch.where(torch.isfinite(square), square, 0.0)
        total += float(square.sum())
        for dim, found in zip(dims, sums, strict=True):
            found[box[dim]] += square.sum([other for other in range(len(shape)) if other != dim])
    each = [(found * shape[dim] / count).sqrt() for dim, found in zip(dims, sums, strict=True)]
    # A slice of zeros has no scale of its own.
    overall = math.sqrt(total / count) or 1.0
    kept = [torch.where(values > 0, values, overall) for values in each]
    return _Scales(overall, list(zip(dims, kept, strict=True)), len(shape))


class _Pools:
    def __init__(self, shape: tuple[int, ...], dims: list[int], device: torch.device) -> None:
        zeros = torch.zeros(7, _POOLS, dtype=torch.float64, device=device)
        self._count, self._size, self._max_r, self._max_t, self._sum_r, self._sum_t, _ = zeros
        self._dims = dims
        self._rank = len(shape)
        self._slices = [
            torch.zeros(3, shape[dim], dtype=torch.float64, device=device) for dim in dims
        ]
        self._elements = math.prod(shape)
        self._odd = dict.fromkeys(("lost", "odd", "overflowed", "strange"), 0)

    def add(
        self,
        box: tuple[slice, ...],
        reference: torch.Tensor,
        test: torch.Tensor,
        exact: torch.Tensor,
        scale: torch.Tensor | float,
    ) -> None:
        wide = torch.complex128 if exact.is_complex() else torch.float64
        reference, test, exact = (t.to(exact.device, wide) for t in (reference, test, exact))
        fine = torch.isfinite(test) & torch.isfinite(exact)
        told = fine & torch.isfinite(reference)
        if not bool(told.all()):
            self._add_odd(reference, test, exact)
        error_r = torch.where(told, (reference - exact).abs() / scale, 0.0)
        error_t = torch.where(fine, (test - exact).abs() / scale, 0.0)
        size = torch.where(fine, exact.abs() / scale, 0.0)
        squares = [error_r.square(), error_t.square(), size.square()]
        for dim, found in zip(self._dims, self._slices, strict=True):
            others = [other for other in range(self._rank) if other != dim]
            for number, square in enumerate(squares):
                found[number, box[dim]] += square.sum(others)
        at = torch.frexp(size).exponent.long()
        at = torch.where(size > 0, at, LOWEST).clamp(LOWEST, HIGHEST).sub(LOWEST)
        at, fine = at.flatten()[fine.flatten()], fine.flatten()
        for sums, values in zip((self._sum_r, self._sum_t, self._size), squares, strict=True):
            sums.index_add_(0, at, values.flatten()[fine])
        self._count.index_add_(0, at, torch.ones_like(at, dtype=torch.float64))
        self._max_r.scatter_reduce_(0, at, error_r.flatten()[fine], "amax")
        self._max_t.scatter_reduce_(0, at, error_t.flatten()[fine], "amax")

    def _add_odd(self, reference: torch.Tensor, test: torch.Tensor, exact: torch.Tensor) -> None:
        kinds = [_kind(side) for side in (reference, test, exact)]
        r, t, x = kinds
        self._odd["lost"] += int(((t != 0) & (r == 0) & (x == 0)).sum())
        self._odd["overflowed"] += int(((t == 0) & (r != 0) & (x == 0)).sum())
        self._odd["odd"] += int(((t != 0) & (r != 0) & (t != r) & (x == 0)).sum())
        self._odd["strange"] += int(((x != 0) & (t != r) & (t != x)).sum())

    def evidence(self) -> RoundingEvidence:
        columns = (self._count, self._size, self._max_r, self._max_t, self._sum_r, self._sum_t)
        rows = torch.stack(columns, 1).tolist()
        by_size = {at + LOWEST: row for at, row in enumerate(rows) if row[0]}
        return RoundingEvidence(
            whole=_pool(_joined(list(by_size.values()))),
            by_size={at: _pool(row) for at, row in _filled(by_size).items()},
            slices=[_worst_slice(found, self._elements) for found in self._slices],
            **self._odd,
        )


def _kind(values: torch.Tensor) -> torch.Tensor:
    """0 for a finite number, 1 and 2 for infinities, 3 for NaN."""
    if values.is_complex():
        return torch.where(torch.isnan(values), 3, torch.isinf(values).long())
    inf = torch.isposinf(values).long() + 2 * torch.isneginf(values).long()
    return torch.where(torch.isnan(values), 3, inf)


def _joined(rows: list[list[float]]) -> list[float]:
    if not rows:
        return [0.0] * 6
    count, size, reference_max, test_max, *squares = zip(*rows, strict=True)
    sums = [sum(column) for column in squares]
    return [sum(count), sum(size), max(reference_max), max(test_max), *sums]


def _filled(rows: dict[int, list[float]]) -> dict[int, list[float]]:
    """A pool of few elements borrows the reference's errors of the next larger numbers (then of
    the next smaller): a handful may have been lucky."""
    found = {}
    order = sorted(rows)
    for place, at in enumerate(order):
        lenders = [*order[place:], *reversed(order[:place])]
        count, largest, square = 0.0, 0.0, 0.0
        for lender in lenders:
            count += rows[lender][0]
            largest = max(largest, rows[lender][2])
            square += rows[lender][4]
            if count >= _ENOUGH:
                break
        own = rows[at]
        found[at] = [own[0], own[1], largest, own[3], square * own[0] / count, own[5]]
    return found


def _pool(row: list[float]) -> Pool:
    count = row[0] or 1.0
    size, reference, test = (math.sqrt(row[at] / count) for at in (1, 4, 5))
    return Pool(int(row[0]), size, row[2], row[3], reference, test)


def _worst_slice(found: torch.Tensor, elements: int) -> Pool:
    each = elements // found.shape[1]
    reference, test, size = (found / each).sqrt()
    at = int(test.argmax())
    worst_r, worst_t = float(reference.max()), float(test[at])
    return Pool(each, float(size[at]), worst_r, worst_t, worst_r, worst_t)


_NARROW = 1e-4
"""A dtype with a larger unit than this is computed in float32 inside most operations. Any number
between the units of float32 (1.2e-7) and float16 (9.8e-4) would do."""


class Floors(NamedTuple):
    """In units in the last place: errors that no one is blamed for."""

    largest: float
    mean: float
    near_zero: float
    """In units of the scale: near 0 a number is as wrong as the larger ones it was made of."""


_WIDE_FLOORS = Floors(8.0, 4.0, 1.0)
"""Functions such as exp and tanh are off by a few units in any library."""
_NARROW_FLOORS = Floors(2.0, 1.5, 1.5)
"""One rounding is half a unit; a function in several steps makes a few."""
_AS_LARGE, _AS_MEAN = 4.0, 2.0
"""Times the reference's own largest and mean error: as good as the reference."""
_SURELY_LARGE, _SURELY_MEAN = 4.0, 1.75
"""Times what is allowed: wrong. docs/inside/numbers.md gives the reasons for all of these; what is
right reaches 0.81 of what is allowed (0.42 of what fails), what is wrong begins at 1.34 (one
changed element in bfloat16; in float32 at 2.75). See benchmarks/rounding_limits.py."""
_AS_SLICE = 1.5
"""Times `_AS_MEAN`, for the worst of many slices: the worst of many is farther off than one.
docs/inside/numbers.md; the margins are in the figures above."""


class PoolTest(NamedTuple):
    """One way to look at the errors."""

    words: str
    reference: float
    test: float
    allowed: float
    surely: float
    """Times `allowed`, from where on it is wrong."""

    @property
    def ratio(self) -> float:
        return self.test / self.allowed if self.allowed else math.inf if self.test else 0.0

    @property
    def evidence(self) -> float:
        """Above 1 it is wrong."""
        return self.ratio / self.surely


def pool_tests(
    found: RoundingEvidence, dtype: torch.dtype, reduction: int | None
) -> Iterator[PoolTest]:
    floors = floors_of(dtype, reduction)
    for exponent, pool in found.by_size.items():
        floor = floors.largest * 2.0**exponent + floors.near_zero
        allowed = max(floor, _AS_LARGE * (1 + 3 / pool.count) * pool.reference_max)
        yield PoolTest("largest", pool.reference_max, pool.test_max, allowed, _SURELY_LARGE)
        if pool.count >= _ENOUGH:
            yield _mean("mean", pool, 2.0**exponent, floors)
    yield _mean("mean", found.whole, found.whole.size, floors)
    for pool in found.slices:
        yield _mean("mean (of a slice)", pool, pool.size, floors, _AS_SLICE)


def _mean(words: str, pool: Pool, size: float, floors: Floors, more: float = 1.0) -> PoolTest:
    """Of few numbers the mean may be as large as the largest: what fails grows from `_SURELY_MEAN`
    to 4 for a single number (docs/inside/numbers.md), as `_SURELY_LARGE`. The 8 is chosen: a
    margin for the luck of few."""
    few = 1 / math.sqrt(pool.count or 1)
    floor = floors.mean + few * (floors.largest - floors.mean)
    luck = max(1.0, (1 + 8 * few) / _AS_MEAN)
    own = _AS_MEAN * more * luck * pool.reference_rms
    allowed = max(floor * size + floors.near_zero / 4, own)
    return PoolTest(words, pool.reference_rms, pool.test_rms, allowed, _SURELY_MEAN + 2.25 * few)


def floors_of(dtype: torch.dtype, reduction: int | None) -> Floors:
    """Each step of a sum is off by half a unit at most, at random: together by a fifth of the
    root of their number in the mean, by five times that at the largest."""
    unit = unit_of(dtype)
    base = _NARROW_FLOORS if unit > _NARROW else _WIDE_FLOORS
    steps = summed_unit(dtype) * math.sqrt(reduction or 1)
    grown = steps if reduction else 0.0
    return Floors(
        base.largest * unit + grown, base.mean * unit + grown / 4, base.near_zero * unit + steps
    )
