"""A tensor has a different memory layout."""

from __future__ import annotations

from compilescope.base.patterns import late
from compilescope.knowledge.findings.remedy import Remedy, judgement
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, shown, wrapper_note

_STRIDE = late(r"(?<![^\s,()])(?P<tensor>[^\s,()]+)\.stride\(\)\[(?P<dim>\d{1,9})\]")


def _applies(miss: RecompileCase) -> bool:
    return _STRIDE.search(miss.finding.subject) is not None


def _tensor(miss: RecompileCase) -> str:
    match = _STRIDE.search(miss.finding.subject)
    return shown(match["tensor"]) if match else "the tensor"


def _why(miss: RecompileCase) -> str:
    if miss.finding.guard_kind == "SHAPE":
        change = f"`{shown(miss.finding.guard)}` held then and doesn't now"
    else:
        change = f"`{shown(miss.finding.subject)}` was {miss.finding.expected} and is {miss.finding.actual}"
    return (
        f"The memory layout of `{_tensor(miss)}` has changed since `{called(miss)}` was compiled: "
        f"{change} (for example, one is a transposed, sliced or expanded view, or channels-last). "
        f"Kernels are specific to the layout.{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    return [
        judgement(
            f"Convert `{_tensor(miss)}` to one layout where it is created, if a copy there is "
            f"cheap. Otherwise, leave it: `{called(miss)}` is compiled once for each layout."
        )
    ]


RULE = GuardRule(
    id="stride-change",
    order=180,
    needs=(".stride()",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
