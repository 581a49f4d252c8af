"""Replaces branches, loops, `with` and `try` by the statements inside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst
import libcst.matchers as m

from compilescope.minify.engine import Pass
from compilescope.minify.source.edits import Change, Edit, body_of, edit, in_runs, walk


def _find(tree: cst.Module) -> Iterator[list[Edit]]:
    later = {node.orelse for node in walk(tree) if isinstance(node, cst.If)}
    blocks = [node for node in walk(tree) if isinstance(node, _BLOCKS)]
    ifs = [node for node in blocks if isinstance(node, cst.If)]
    yield [edit(node, _body) for node in blocks if node not in later]
    yield [edit(node, _else_of_if) for node in ifs if node not in later and node.orelse]
    yield [edit(node, _else_of_elif) for node in ifs if node in later]
    yield [edit(node, _without_else) for node in blocks if getattr(node, "orelse", None)]
    yield [edit(node, _first_turn) for node in blocks if isinstance(node, cst.For)]
    yield [edit(node, _bound) for node in blocks if isinstance(node, cst.With)]
    yield from _of_try(tree)


_BLOCKS = (cst.If, cst.For, cst.While, cst.With, cst.Try)


def _body(node: Any) -> Any:
    return cst.FlattenSentinel(body_of(node.body))


def _else_of_if(node: cst.If) -> Any:
    if isinstance(node.orelse, cst.Else):
        return cst.FlattenSentinel(body_of(node.orelse.body))
    return node if node.orelse is None else node.orelse


def _else_of_elif(node: cst.If) -> Any:
    return cst.Else(node.body)


def _without_else(node: Any) -> Any:
    return node.with_changes(orelse=None)


def _first_turn(node: cst.For) -> Any:
    """`for i in range(9): ...` as `i = 0; ...`, and likewise over what is written out."""
    if m.matches(node.iter, m.Call(func=m.Name("range"))):
        first: cst.BaseExpression = cst.Integer("0")
    elif isinstance(node.iter, (cst.List, cst.Tuple)) and node.iter.elements:
        first = node.iter.elements[0].value
    else:
        first = cst.Subscript(node.iter, [cst.SubscriptElement(cst.Index(cst.Integer("0")))])
    return _bind(node.target, first, node.body)


def _bound(node: cst.With) -> Any:
    """`with a as b: ...` as `b = a; ...`."""
    item = node.items[0]
    if item.asname is None:
        return node
    return _bind(item.asname.name, item.item, node.body)


def _bind(target: Any, value: cst.BaseExpression, body: cst.BaseSuite) -> Any:
    line = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], value)])
    return cst.FlattenSentinel([line, *body_of(body)])


def _of_try(tree: cst.Module) -> Iterator[list[Edit]]:
    tries = [node for node in walk(tree) if isinstance(node, cst.Try)]

    def handler(node: cst.Try) -> Any:
        if not node.handlers:
            return node
        return cst.FlattenSentinel(body_of(node.handlers[0].body))

    def final(node: cst.Try) -> Any:
        if node.finalbody is None:
            return node
        return cst.FlattenSentinel(body_of(node.finalbody.body))

    without_final: Change = lambda node: node.with_changes(finalbody=None)  # noqa: E731
    with_final = [node for node in tries if node.finalbody is not None]
    yield [edit(node, handler) for node in tries if node.handlers]
    yield [edit(node, final) for node in with_final]
    yield [edit(node, without_final) for node in with_final]
    yield [edit(h, lambda _: cst.RemoveFromParent()) for node in tries for h in node.handlers]


PASS = Pass("blocks", 30, in_runs(_find))
