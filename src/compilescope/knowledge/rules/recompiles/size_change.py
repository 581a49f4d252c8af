"""A dimension of a tensor changes size."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import varies_by_itself
from compilescope.knowledge.rules.recompiles._subjects import called, shown, size_of, wrapper_note


def _applies(miss: RecompileCase) -> bool:
    return size_of(miss.finding.subject) is not None and miss.finding.guard_kind != "SHAPE"


def _parts(miss: RecompileCase) -> tuple[str, int]:
    return size_of(miss.finding.subject) or (miss.finding.subject, 0)


def _again(miss: RecompileCase) -> str:
    """The values told are the first that failed; more may have."""
    again = miss.finding
    if again.count < 2:
        return ""
    if again.fixed_again:
        return (
            f" It failed in {again.count} recompiles: other sizes followed, and what was compiled "
            "for them did not serve the next one."
        )
    return f" It failed in {again.count} recompiles, of versions that each had one size."


def _why(miss: RecompileCase) -> str:
    tensor, dim = _parts(miss)
    return (
        f"`{called(miss)}` was compiled for a `{shown(tensor)}` whose dimension {dim} is "
        f"{miss.finding.expected}; this call has {miss.finding.actual}. Dynamo treats a size as a "
        "constant until it sees a second one; with `dynamic=False`, "
        f"always.{_again(miss)}{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    tensor, dim = _parts(miss)
    text = shown(tensor)
    return [
        source(
            f"Use one size or a few: pad dimension {dim} of `{text}` and crop the result, if "
            f"`{called(miss)}` can ignore the padding, or drop a last, smaller batch."
        ),
        varies_by_itself(f"{text}.shape[{dim}]"),
    ]


RULE = GuardRule(
    id="size-change",
    order=220,
    needs=(".size()",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
