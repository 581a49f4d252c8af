"""Keeps the value of an assignment or return and drops its target, or drops a return's value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from compilescope.minify.engine import Pass
from compilescope.minify.source.edits import Edit, edit, in_runs, walk


def _find(tree: cst.Module) -> Iterator[list[Edit]]:
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


PASS = Pass("assignments", 50, in_runs(_find))
