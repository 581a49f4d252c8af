"""A comparison of sizes that an operator takes as a flag is made a Python bool.

`is_causal=T > 1` is a symbol of the graph once the size is, and so is `bool(T > 1)` (torch 2.13). At
a branch Dynamo decides, and guards on the answer: a graph for each.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.liveness import only_value
from compilescope.knowledge.source.refusals import NotMeant
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_FLAGS = operators.named(
    "is_causal enable_gqa training keepdim unbiased largest sorted descending ceil_mode "
    "count_include_pad align_corners"
)
"""Arguments of torch's operators that are bools: a comparison there is not one of tensors."""


def _propose(subject: Subject) -> Patch:
    edit = Edit(subject.module)
    found = list(_flags(subject))
    if not found:
        raise NotMeant("no operator is given a comparison here")
    for value in found:
        code = subject.module.code(value.with_changes(lpar=(), rpar=()))
        edit.replace(value, edit.expression(f"True if {code} else False"))
    return Patch(edit.files())


def _flags(subject: Subject) -> Iterator[cst.BaseExpression]:
    """What calls of torch in the statement are given by name that is a comparison."""
    module = subject.module
    for call in module.walk(subject.statement):
        if not isinstance(call, cst.Call):
            continue
        if not any(operators.plain_name(each) for each in module.meaning(call.func)):
            continue
        for arg in call.args:
            named = arg.keyword is not None and arg.keyword.value in _FLAGS
            if named and _compares(subject, arg.value):
                yield arg.value


def _compares(subject: Subject, value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Name):
        given = only_value(subject.module, subject.function, value.value)
        return given is not None and _compares(subject, given)
    return isinstance(value, cst.Comparison)


FIX = Fix(
    id="bool-for-comparison",
    title="make the comparison a bool",
    rules=frozenset({"symbolic-value", "GB0112"}),
    order=30,
    kind="source",
    why="A comparison of sizes is a bool in Python already. In the graph it is a symbol, which the "
    "operator does not take; at a branch Dynamo decides, and guards on the answer.",
    propose=_propose,
)
