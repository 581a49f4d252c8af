"""Python numbers that a branch sets: as tensors they must mean the same wherever they are used."""

from __future__ import annotations

import struct

import libcst as cst

from compilescope.fixes.patch import Refused
from compilescope.fixes.source.effects import Effect
from compilescope.fixes.source.liveness import reads
from compilescope.fixes.source.purity import short
from compilescope.fixes.source.snippets import number
from compilescope.fixes.source.values import is_static
from compilescope.fixes.subject import Subject


def check_numbers(
    subject: Subject,
    function: cst.FunctionDef,
    whole: cst.CSTNode,
    one: Effect,
    other: Effect | None,
) -> None:
    """Raises `Refused` where a side gives a name a Python value that cannot become a tensor."""
    sides = [each.operand for each in (one, other) if each is not None and each.operand is not None]
    python = [node for node in sides if is_static(subject, node)]
    for node in python:
        check_number(subject, node)
        value = number(node)
        if len(python) == 1 and isinstance(value, int) and not -128 <= value <= 127:
            shown = short(subject.module, node)
            raise Refused(f"`{shown}` may not fit the dtype of the other side")
    if one.kind != "name":
        return
    if other is None:
        seen = subject.facts(one.target, subject.module.line(whole))
        if any(fact.kind not in ("tensor", "parameter", "number") for fact in seen):
            raise Refused(f"`{one.target}` does not hold a tensor before the branch")
        was_number = any(fact.kind == "number" for fact in seen)
    else:
        was_number = False
    if python or was_number:
        check_uses(subject, function, whole, one.target)


def check_number(subject: Subject, node: cst.BaseExpression) -> None:
    value = number(node)
    if value is None:
        if isinstance(node, (cst.Name, cst.SimpleString, cst.ConcatenatedString, cst.Comparison)):
            seen = subject.facts(subject.module.code(node))
            if not seen or any(fact.kind != "number" for fact in seen):
                raise Refused(f"`{short(subject.module, node)}` is a Python value, not a tensor")
        return
    exact = isinstance(value, int) or struct.unpack("f", struct.pack("f", value))[0] == value
    if not exact and _has_doubles(subject):
        shown = short(subject.module, node)
        raise Refused(f"`{shown}` would be rounded as a tensor, and there are float64 tensors")


def _has_doubles(subject: Subject) -> bool:
    """Or nobody can tell."""
    here = subject.program.facts.seen.get(subject.file, {}).get(subject.line, {})
    if not here:
        return True
    return any(fact.dtype == "float64" for seen in here.values() for fact in seen)


def check_uses(subject: Subject, function: cst.FunctionDef, whole: cst.CSTNode, name: str) -> None:
    """As an operand of arithmetic, a number and a tensor of no dimensions are the same."""
    module = subject.module
    inside = {id(each) for each in module.walk(whole)}
    loop = module.around(whole, cst.For, cst.While)
    start = module.position(whole).end.line if loop is None else module.line(loop)
    for each in reads(module, function.body):
        if each.value != name or id(each) in inside or module.line(each) < start:
            continue
        above = module.parent(each)
        if isinstance(above, cst.UnaryOperation):
            above = module.parent(above)
        if not isinstance(above, (cst.BinaryOperation, cst.AugAssign)):
            raise Refused(f"`{name}` is a Python number and is used as one later")
