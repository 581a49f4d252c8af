"""Python numbers that a loop counts with, and that may as well be tensors."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.patch import Refused
from compilescope.fixes.source import liveness
from compilescope.fixes.source.snippets import number
from compilescope.fixes.subject import Subject


def counters_of(subject: Subject, loop: cst.While) -> set[str]:
    """Whole numbers that the loop only counts up or down with, and nobody asks for later."""
    module, function = subject.module, subject.function
    found: set[str] = set()
    for name in liveness.names_set(module, loop.body):
        seen = subject.facts(name, module.line(loop))
        start = _start(subject, loop, name)
        whole = all(fact.type == "builtins.int" for fact in seen) if seen else start
        if not whole:
            continue
        changes = [
            each
            for each in module.walk(loop.body)
            if any(isinstance(t, cst.Name) and t.value == name for t in liveness.targets(each))
        ]
        if not all(_counts(each) for each in changes):
            raise Refused(f"`{name}` is a Python number, and the loop does more than count with it")
        if liveness.is_read_later(module, function, loop, name):
            raise Refused(f"`{name}` is a Python number and is used after the loop")
        _check_reads(subject, loop, name)
        found.add(name)
    return found


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
