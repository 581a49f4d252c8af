"""Removes the outermost operation of a statement's value: `x = f(g(x))` becomes `x = g(x)`.

The pass over all expressions would find these too; here they go in runs, before each is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from compilescope.minify.engine import Pass
from compilescope.minify.source.edits import Change, Edit, closed, edit, in_runs, walk

_STATEMENTS = (cst.Expr, cst.Assign, cst.AugAssign, cst.Return)


def _find(tree: cst.Module) -> Iterator[list[Edit]]:
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


PASS = Pass("heads", 55, in_runs(_find))
