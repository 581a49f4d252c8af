"""A tensor of a different class: a Parameter, a subclass."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import called, inside, shown

_PLAIN = ("bool", "complex", "dict", "float", "int", "list", "str", "tuple")
"""Not a tensor at all."""


def _applies(miss: RecompileCase) -> bool:
    tensors = miss.finding.guard_kind == "TENSOR_MATCH" and miss.finding.actual not in _PLAIN
    return tensors and bool(inside(miss.finding.subject, "type"))


def _why(miss: RecompileCase) -> str:
    name = shown(inside(miss.finding.subject, "type"))
    return (
        f"`{name}` was a {miss.finding.expected} when `{called(miss)}` was compiled and is a "
        f"{miss.finding.actual} now. A tensor class can change what operations do, so each has its "
        "own graph."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    name = shown(inside(miss.finding.subject, "type"))
    classes = {miss.finding.expected, miss.finding.actual}
    cases = leave(miss, "class")
    if "Parameter" in classes:
        return [
            source(
                f"If it is a Parameter, pass a view of it, `{name}.view_as({name})`: an ordinary "
                "tensor on the same memory, through which gradients reach the parameter."
            ),
            cases,
        ]
    return [
        cases,
        source(
            f"Or pass `{name}.as_subclass(torch.Tensor)`, a plain tensor on the same memory, if "
            f"`{called(miss)}` needs nothing that the subclass adds."
        ),
    ]


RULE = GuardRule(
    id="tensor-class",
    order=310,
    needs=("type(",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
