"""Is a difference wrong, or rounding? Both sides are held against the same result in float64.

A test passes whose errors are like the reference's own, or as small as its dtype allows; it fails
where they are well beyond both; between the two nobody can tell. docs/numbers.md says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch

from compilescope.diff.config import ComparisonConfig, unit_of
from compilescope.diff.evidence import Evidence, gather
from compilescope.diff.fused import tally_of
from compilescope.diff.pairs import Incomparable, Pair, pair_up, shape_of
from compilescope.diff.rounding import floors_of, pool_tests
from compilescope.diff.stretches import Rules
from compilescope.diff.tally import Tally

Verdict = Literal["pass", "fail", "unknown"]


@dataclass(frozen=True)
class Judgement:
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
) -> Judgement:
    """`reduction` is how many numbers were summed into one, where that is known."""
    config = config or ComparisonConfig()
    wanted, found = shape_of(reference), shape_of(test)
    if wanted != found:
        reason = f"its shape is {list(found)}, the reference's {list(wanted)}"
        return Judgement("fail", reason)
    try:
        pair = pair_up(reference, test)
    except Incomparable as error:
        return Judgement("unknown", str(error))
    tolerance = config.tolerance(pair.dtype, reduction)
    tally = tally_of(pair, Rules(tolerance, config.equal_nan, 0, 1), config)
    return judge_pair(pair, tally, exact, config, reduction=reduction)


def judge_pair(
    pair: Pair,
    tally: Tally,
    exact: torch.Tensor | None,
    config: ComparisonConfig,
    *,
    reduction: int | None = None,
) -> Judgement:
    """The pair has been walked through: `tally` is what was found."""
    reduction = reduction or config.reduction
    if tally.count == 0:
        return Judgement("pass", "empty")
    if tally.differing == 0:
        return Judgement("pass", "equal", test_error=0.0, allowed=0.0)
    given = config.is_given(pair.dtype)
    plain = _by_tolerance(pair, tally, config, reduction)
    if given and plain.verdict == "pass":
        return plain
    anchor, why_not = _anchor(pair, exact)
    if anchor is None:
        wanted = plain.verdict == "unknown" or (exact is not None and plain.verdict == "fail")
        note = f"; {why_not}" if wanted else ""
        return Judgement(plain.verdict, plain.reason + note, None, plain.test_error, plain.allowed)
    if pair.kind == "int":
        return _by_flips(pair, anchor, tally)
    found = _by_evidence(gather(pair, anchor), pair.dtype, reduction)
    if found.verdict == "unknown" and given:
        return Judgement("fail", f"{plain.reason}; {found.reason}", *_figures(found))
    return found


def _figures(found: Judgement) -> tuple[float | None, float | None, float | None]:
    return found.reference_error, found.test_error, found.allowed


def _anchor(pair: Pair, exact: torch.Tensor | None) -> tuple[torch.Tensor | None, str]:
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
    pair: Pair, tally: Tally, config: ComparisonConfig, reduction: int | None
) -> Judgement:
    atol, rtol = config.tolerance(pair.dtype, reduction)
    percent = 100 * tally.mismatched / tally.count
    words = f"{tally.mismatched} of {tally.count} elements differ by more than {atol:.2g} + "
    words += f"{rtol:.2g} * |reference|; the largest difference is {tally.max_abs:.3g}"
    if not atol and not rtol:
        words = f"{tally.mismatched} of {tally.count} elements differ"
    error = tally.max_abs
    if tally.disagreeing:
        words = f"{tally.disagreeing} of {tally.count} elements are finite on one side only"
        return Judgement("fail", words, None, error, atol)
    if percent <= config.max_mismatch_percentage:
        if tally.mismatched:
            return Judgement("pass", f"{words}; {percent:.3g} % is allowed", None, error, atol)
        words = f"all within {atol:.2g} + {rtol:.2g} * |reference|"
        return Judgement("pass", words, None, error, atol)
    noise = 4 * floors_of(pair.dtype, reduction).largest * tally.largest_reference
    if not config.is_given(pair.dtype) and error <= noise:
        words += ": possibly rounding, where large numbers cancel"
        return Judgement("unknown", words, None, error, noise)
    return Judgement("fail", words, None, error, atol)


def _by_flips(pair: Pair, exact: torch.Tensor, tally: Tally) -> Judgement:
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
        return Judgement("fail", words, 0.0, its / tally.count, 0.0)
    words += f"; {own} of the reference's do not match it either"
    verdict: Verdict = "pass" if its <= own else "unknown" if its <= 4 * own + 4 else "fail"
    return Judgement(verdict, words, own / tally.count, its / tally.count, own / tally.count)


def _by_evidence(found: Evidence, dtype: torch.dtype, reduction: int | None) -> Judgement:
    tests = list(pool_tests(found, dtype, reduction))
    worst = max(tests, key=lambda test: (test.ratio > 1, test.evidence, test.ratio))
    figures = (worst.reference, worst.test, worst.allowed)
    words = (
        f"compared with float64, the {worst.words} error is {worst.test:.2g} of the numbers' "
        f"scale (reference: {worst.reference:.2g}); rounding allows {worst.allowed:.2g}"
    )
    if found.lost:
        words = f"not finite at {found.lost} of {found.whole.count + found.lost} places where the "
        return Judgement("fail", f"{words}reference and float64 are", *figures)
    if found.strange:
        words = f"matches neither the reference nor float64 at {found.strange} places"
        return Judgement("fail", f"{words} that are not finite", *figures)
    if worst.evidence > 1:
        return Judgement("fail", words, *figures)
    if found.odd:
        words = f"not finite on either side at {found.odd} places, in different ways, where float64"
        return Judgement("unknown", f"{words} is", *figures)
    if worst.ratio > 1:
        return Judgement("unknown", f"inconclusive: {words}", *figures)
    if found.whole.test_rms < found.whole.reference_rms:
        words += "; it is closer to float64 than the reference"
    if found.overflowed:
        words += f"; the reference is not finite at {found.overflowed} places where float64 is"
    return Judgement("pass", words, *figures)
