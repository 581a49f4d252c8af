"""Makes assignments and returns plainer: targets, the head of a value, variables read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from compilescope.change.minify.engine import Pass
from compilescope.change.minify.source.edits import (
    Change,
    Edit,
    closed,
    edit,
    in_runs,
    names_in,
    one_by_one,
    walk,
)


def _targets(tree: cst.Module) -> Iterator[list[Edit]]:
    """Keeps the value of an assignment or return without its target, or drops a return's value."""
    nodes = list(walk(tree))[::-1]
    assigned = [node for node in nodes if isinstance(node, (cst.Assign, cst.AugAssign))]
    returned = [node for node in nodes if isinstance(node, cst.Return) and node.value]
    yield [edit(node, _value) for node in assigned]
    yield [edit(node, lambda each: each.with_changes(value=None)) for node in returned]
    yield [edit(node, _value) for node in returned]
    yield [edit(node, _plain) for node in assigned if isinstance(node, cst.AugAssign)]
    yield [edit(node, _one_target) for node in assigned if isinstance(node, cst.Assign)]
    yield [
        edit(node, lambda each: each.with_changes(msg=None, comma=cst.MaybeSentinel.DEFAULT))
        for node in nodes
        if isinstance(node, cst.Assert) and node.msg
    ]


def _value(node: Any) -> Any:
    return node if node.value is None else cst.Expr(node.value)


def _plain(node: cst.AugAssign) -> Any:
    """`x += y` as `x = y`."""
    return cst.Assign([cst.AssignTarget(node.target)], node.value)


def _one_target(node: cst.Assign) -> Any:
    """`a, b = value` and `a = b = value` as `a = value`."""
    if len(node.targets) > 1:
        return node.with_changes(targets=node.targets[:1])
    target = node.targets[0].target
    if not isinstance(target, (cst.Tuple, cst.List)) or not target.elements:
        return node
    first: Any = target.elements[0].value
    return node.with_changes(targets=[cst.AssignTarget(first)])


_STATEMENTS = (cst.Expr, cst.Assign, cst.AugAssign, cst.Return)


def _heads(tree: cst.Module) -> Iterator[list[Edit]]:
    """Removes the outermost operation of a statement's value: `x = f(g(x))` becomes `x = g(x)`.

    The pass over all expressions would find these too; here they go in runs, before each is asked.
    """
    statements = [node for node in walk(tree) if isinstance(node, _STATEMENTS)][::-1]
    calls = [node for node in statements if isinstance(node.value, cst.Call)]
    operations = [node for node in statements if isinstance(node.value, cst.BinaryOperation)]
    for number in (0, 1):
        yield [edit(node, _argument(number)) for node in calls]
    yield [edit(node, _receiver) for node in calls]
    for side in ("left", "right"):
        yield [edit(node, _operand(side)) for node in operations]


def _argument(number: int) -> Change:
    def change(node: Any) -> Any:
        given = node.value.args if isinstance(node.value, cst.Call) else ()
        plain = [each.value for each in given if not each.star]
        return node.with_changes(value=closed(plain[number])) if number < len(plain) else node

    return change


def _receiver(node: Any) -> Any:
    function = node.value.func if isinstance(node.value, cst.Call) else None
    if not isinstance(function, cst.Attribute):
        return node
    return node.with_changes(value=closed(function.value))


def _operand(side: str) -> Change:
    def change(node: Any) -> Any:
        if not isinstance(node.value, cst.BinaryOperation):
            return node
        return node.with_changes(value=closed(getattr(node.value, side)))

    return change


def _variables(tree: cst.Module) -> Iterator[list[Edit]]:
    """Moves the value of a variable that is set once and read once to where it is read."""
    for body in _bodies(tree):
        names = [name for line in body for name in names_in(line)]
        for line in body:
            target, value = _assigned(line)
            if target is None:
                continue
            same = [name for name in names if name.value == target.value and name is not target]
            if len(same) == 1:
                yield [_moved(line, same[0], value)]


def _bodies(tree: cst.Module) -> Iterator[Sequence[Any]]:
    yield tree.body
    for node in walk(tree):
        if isinstance(node, cst.IndentedBlock):
            yield node.body


def _assigned(line: Any) -> tuple[cst.Name | None, Any]:
    only = line.body[0] if isinstance(line, cst.SimpleStatementLine) and line.body else None
    if not isinstance(only, cst.Assign) or len(line.body) != 1 or len(only.targets) != 1:
        return None, None
    target = only.targets[0].target
    return (target, only.value) if isinstance(target, cst.Name) else (None, None)


def _moved(line: Any, name: cst.Name, value: Any) -> Edit:
    return (
        (name, lambda _: closed(value.deep_clone())),
        (line, lambda _: cst.RemoveFromParent()),
    )


PASSES = (
    Pass("assignments", 50, in_runs(_targets)),
    Pass("heads", 55, in_runs(_heads)),
    Pass("variables", 120, one_by_one(_variables)),
)
