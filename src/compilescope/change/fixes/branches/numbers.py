"""Python numbers that a branch sets or a loop counts with: as tensors they must mean the same."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

from compilescope.change.fixes.branches.effects import Effect
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.kinds import (
    Kind,
    check_one_kind,
    joined_kind,
    kind_of,
    kind_of_fact,
    made_floating,
)
from compilescope.change.fixes.values.tensors import is_static
from compilescope.knowledge.source.flow import liveness
from compilescope.knowledge.source.flow.liveness import reads
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst, kinds


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
        values = [kind_of(subject, node) for node in sides]
        if other is None:
            before = subject.facts(one.target, subject.module.line(whole))
            values += [kind_of_fact(fact) for fact in before]
        check_uses(subject, function, whole, one.target, values)


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
    here = subject.program.facts.all_at(subject.file, subject.line)
    if not here:
        return True
    return any(fact.dtype == "float64" for seen in here.values() for fact in seen)


def check_uses(
    subject: Subject,
    function: cst.FunctionDef,
    whole: cst.CSTNode,
    name: str,
    values: Sequence[Kind],
) -> None:
    """As an operand of arithmetic with tensors, a number and a tensor of no dimensions are the
    same, but for what they make of a dtype. `values` are those that the name may have."""
    module = subject.module
    inside = {id(each) for each in module.walk(whole)}
    loop = module.around(whole, cst.For, cst.While)
    start = module.position(whole).end.line if loop is None else module.line(loop)
    for each in reads(module, function.body):
        if each.value != name or id(each) in inside or module.line(each) < start:
            continue
        if not check_operand(subject, each, values):
            raise Refused(f"`{name}` is a Python number and is used as one later")


def check_operand(subject: Subject, node: cst.CSTNode, values: Sequence[Kind]) -> bool:
    """Is it an operand of arithmetic that ends in a tensor? Raises `Refused` where what comes out
    would be of another kind if one tensor stood for all of the values."""
    above = subject.module.parent(node)
    if isinstance(above, cst.UnaryOperation):
        return check_operand(subject, above, values)
    if isinstance(above, cst.AugAssign):
        met = kind_of(subject, above.target)
    elif isinstance(above, cst.BinaryOperation):
        met = kind_of(subject, above.right if above.left is node else above.left)
    else:
        return False
    if met.python:
        plain = isinstance(above, cst.BinaryOperation) and isinstance(above.operator, _PLAIN)
        return plain and check_operand(subject, above, [joined_kind([met, v]) for v in values])
    divides = isinstance(above.operator, (cst.Divide, cst.DivideAssign))
    picked = replace(joined_kind(values), python=False)
    made = [joined_kind([met, value]) for value in (picked, *values)]
    check_one_kind([made_floating(each) for each in made] if divides else made)
    return True


_PLAIN = kinds(lambda: (cst.Add, cst.Subtract, cst.Multiply))


def counters_of(subject: Subject, loop: cst.While) -> set[str]:
    """Whole numbers that the loop only counts up or down with, and nobody asks for later."""
    module = subject.module
    found: set[str] = set()
    for name in liveness.names_set(module, loop.body):
        seen = subject.facts(name, module.line(loop))
        start = _start(subject, loop, name)
        whole = all(fact.type == "builtins.int" for fact in seen) if seen else start
        if not whole:
            continue
        check_counter(subject, loop, name)
        found.add(name)
    return found


def check_counter(subject: Subject, loop: cst.While, name: str) -> None:
    """Raises `Refused` where the loop does more than count with the name."""
    module, function = subject.module, subject.function
    if not all(_counts(each) for each in changes_of(module, loop.body, name)):
        raise Refused(f"`{name}` is a Python number, and the loop does more than count with it")
    if liveness.is_read_later(module, function, loop, name):
        raise Refused(f"`{name}` is a Python number and is used after the loop")
    _check_reads(subject, loop, name)


def changes_of(module: SourceModule, node: cst.CSTNode, name: str) -> list[cst.CSTNode]:
    """Statements within that set the name."""
    return [
        each
        for each in module.walk(node)
        if any(isinstance(t, cst.Name) and t.value == name for t in liveness.targets(each))
    ]


def _start(subject: Subject, loop: cst.While, name: str) -> bool:
    """It is set to a whole number in the same block, just before."""
    block = subject.module.block_of(loop)
    before: list[cst.CSTNode] = []
    for each in block.body:
        if each is loop:
            break
        before += [part for part in subject.module.walk(each) if isinstance(part, cst.Assign)]
    values = [
        each.value
        for each in before
        if isinstance(each, cst.Assign)
        and any(isinstance(t, cst.Name) and t.value == name for t in liveness.targets(each))
    ]
    return bool(values) and isinstance(number(values[-1]), int)


def _counts(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.AugAssign):
        kinds = (cst.AddAssign, cst.SubtractAssign)
        return isinstance(node.operator, kinds) and isinstance(number(node.value), int)
    if isinstance(node, cst.Assign) and isinstance(node.value, cst.BinaryOperation):
        kinds_ = (cst.Add, cst.Subtract)
        whole = isinstance(number(node.value.right), int)
        return isinstance(node.value.operator, kinds_) and whole
    return False


def _check_reads(subject: Subject, loop: cst.While, name: str) -> None:
    """As a tensor it may be compared and calculated with; not be an index or a size."""
    module = subject.module
    for each in liveness.reads(module, loop):
        above = module.parent(each)
        plain = (cst.Comparison, cst.ComparisonTarget, cst.BinaryOperation, cst.AugAssign)
        if each.value == name and not isinstance(above, plain):
            raise Refused(f"`{name}` is a Python number and is used as one in the loop")
