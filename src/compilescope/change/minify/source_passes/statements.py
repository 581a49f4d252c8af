"""Removes statements, and replaces blocks by the statements inside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import libcst as cst
import libcst.matchers as m

from compilescope.change.minify.deletion import delete_runs
from compilescope.change.minify.engine import Pass
from compilescope.change.minify.source.candidate import SourceCandidate
from compilescope.change.minify.source.edits import (
    Change,
    Edit,
    Proposing,
    apply,
    body_of,
    edit,
    in_runs,
    names_in,
    remove,
    reparsed,
    statements_by_depth,
    walk,
)


def without_unused(present: SourceCandidate) -> SourceCandidate:
    """What goes may have been the last to name something else: until nothing more goes."""
    while True:
        tree = reparsed(present)
        smaller = apply(tree, _unused(tree))
        if smaller is None or smaller.size() >= present.size():
            return present
        present = smaller


def _unused(tree: cst.Module) -> list[Edit]:
    named = Counter(name.value for name in names_in(tree))
    found: list[Edit] = []
    for line in tree.body:
        bound = _bound(line)
        # Within its own definition a name may stand as often as it likes.
        own = Counter(name.value for name in names_in(line))
        if bound and all(named[name] <= own[name] for name in bound):
            found.append(remove(line))
    asked = {node.attr.value for node in walk(tree) if isinstance(node, cst.Attribute)}
    for node in walk(tree):
        if isinstance(node, cst.ClassDef):
            found += [remove(each) for each in node.body.body if _is_unasked(each, asked)]
    return found


def _is_unasked(node: Any, asked: set[str]) -> bool:
    """A method that nothing calls by name; torch calls some by itself."""
    if not isinstance(node, cst.FunctionDef) or node.decorators:
        return False
    name = node.name.value
    return name not in asked and name != "forward" and not name.startswith("__")


def _bound(line: Any) -> set[str]:
    if isinstance(line, (cst.FunctionDef, cst.ClassDef)):
        return {line.name.value}
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return set()
    only = line.body[0]
    if not isinstance(only, (cst.Import, cst.ImportFrom)) or isinstance(only.names, cst.ImportStar):
        return set()
    if isinstance(only, cst.ImportFrom) and getattr(only.module, "value", "") == "__future__":
        return set()
    return {(each.evaluated_alias or each.evaluated_name).split(".")[0] for each in only.names}


def _remove_statements(present: SourceCandidate) -> Proposing:
    """Removes statements: whole functions and classes first, then what is inside those that stay.

    After each depth, definitions that nothing names any more go at once: what is inside them is not
    asked about one by one.
    """
    depth = 0
    while True:
        lighter = without_unused(present)
        if lighter is not present and (yield lighter):
            present = lighter
        tree = reparsed(present)
        levels = statements_by_depth(tree)
        if depth >= len(levels):
            return
        edits = [remove(each) for each in levels[depth] if not _is_pass(each)]
        gone = yield from delete_runs(edits, _without(tree))
        present = _without(tree)(gone) or present
        depth += 1


def _without(tree: cst.Module) -> Callable[[frozenset[Edit]], SourceCandidate | None]:
    return lambda gone: apply(tree, gone)


def _is_pass(statement: cst.CSTNode) -> bool:
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        return isinstance(statement.body[0], cst.Pass)
    return isinstance(statement, cst.Pass)


def _blocks(tree: cst.Module) -> Iterator[list[Edit]]:
    """Replaces branches, loops, `with` and `try` by the statements inside them."""
    later = {node.orelse for node in walk(tree) if isinstance(node, cst.If)}
    blocks = [node for node in walk(tree) if isinstance(node, _BLOCKS)]
    ifs = [node for node in blocks if isinstance(node, cst.If)]
    yield [edit(node, _body) for node in blocks if node not in later]
    yield [edit(node, _else_of_if) for node in ifs if node not in later and node.orelse]
    yield [edit(node, _else_of_elif) for node in ifs if node in later]
    yield [edit(node, _without_else) for node in blocks if getattr(node, "orelse", None)]
    yield [edit(node, _first_turn) for node in blocks if isinstance(node, cst.For)]
    yield [edit(node, _as_assignment) for node in blocks if isinstance(node, cst.With)]
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


def _as_assignment(node: cst.With) -> Any:
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


PASSES = (
    Pass("statements", 20, _remove_statements),
    Pass("blocks", 30, in_runs(_blocks)),
)
