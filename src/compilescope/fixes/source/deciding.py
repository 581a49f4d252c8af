"""A number read out of a tensor by which Python decides: as a symbol of the graph it cannot."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.patch import NeedsRun, Refused
from compilescope.fixes.source.extraction import read_from
from compilescope.fixes.source.liveness import reads
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.source.purity import operator_of, short
from compilescope.fixes.subject import Subject

_DRAWS = ("random.choice", "random.choices", "random.sample", "random.shuffle")
_CAPTURED = "data-dependent expression"
"""What torch says of a symbol that stands for such a number."""
_READ_BY_OPERATOR = "Data dependent operator"
_SIZING = frozenset(
    {
        "arange",
        "expand",
        "full",
        "narrow",
        "new_empty",
        "new_full",
        "new_ones",
        "new_zeros",
        "ones",
        "rand",
        "randn",
        "repeat",
        "reshape",
        "split",
        "topk",
        "view",
        "zeros",
    }
)
"""Operators whose output has the number for a size, as far as they take a number."""


def is_of_symbol(subject: Subject) -> bool:
    """Did Dynamo stop at a number that the graph holds already, and not at a tensor?"""
    return _CAPTURED in subject.finding.title


def check_no_decision(subject: Subject) -> None:
    """Raises `Refused` where a branch or a loop hangs on the number: the break would only move."""
    module, node = subject.module, subject.node
    if is_of_symbol(subject):
        raise Refused("the number is already a symbol in the graph, and this line needs its value")
    for each in module.walk(node):
        if isinstance(each, cst.Call) and module.calls(each, *_DRAWS):
            raise Refused(f"`{short(module, each)}` is not a number read from a tensor")
    if isinstance(node, cst.BaseStatement):
        return
    _check_sizing(subject, node)
    where = decides(module, node)
    statement = subject.statement
    names = _names_given(statement)
    if where is None and names:
        function = module.function_of(node)
        found = reads(module, function.body) if function is not None else ()
        where = next((w for r in found if r.value in names and (w := decides(module, r))), None)
    if where is not None:
        raise Refused(f"Python control flow depends on the number in `{short(module, where)}`")


def _check_sizing(subject: Subject, node: cst.CSTNode) -> None:
    """torch 2.13 raises an internal error for a symbol that an operator makes of an argument, and
    that no size of what it gives shows: `torch.roll(x, random.randint(0, 3))`."""
    if _READ_BY_OPERATOR not in subject.finding.title or subject.program.facts.seen:
        return
    module = subject.module
    if not isinstance(node, cst.Call) or read_from(module, node) is not None:
        return
    name = operator_of(module, node) or _last_name(node.func)
    if name not in _SIZING:
        raise NeedsRun(
            f"it is unknown whether a graph accepts the number in `{short(module, node)}`"
        )


def _last_name(func: cst.CSTNode) -> str:
    return func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", "")


def _names_given(statement: cst.BaseStatement) -> set[str]:
    if not isinstance(statement, cst.SimpleStatementLine):
        return set()
    return {
        target.target.value
        for part in statement.body
        if isinstance(part, cst.Assign)
        for target in part.targets
        if isinstance(target.target, cst.Name)
    }


def decides(module: SourceModule, node: cst.CSTNode) -> cst.CSTNode | None:
    """The test that it is part of, or the loop that runs so many times."""
    below = node
    for above in module.ancestors(node):
        if isinstance(above, (cst.If, cst.While, cst.IfExp)) and above.test is below:
            return above.test
        if isinstance(above, cst.Assert) and above.test is below:
            return above.test
        if isinstance(above, cst.BooleanOperation):
            return above
        if isinstance(above, cst.Call) and module.calls(above, "builtins.range"):
            return above
        if isinstance(above, (cst.Subscript, cst.BaseStatement)):
            return None
        below = above
    return None
