"""Removes statements: whole functions and classes first, then what is inside those that stay.

After each depth, definitions that nothing names any more go at once: what is inside them is not
asked about one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import libcst as cst

from compilescope.minify.deletion import delete_runs
from compilescope.minify.engine import Pass
from compilescope.minify.source.candidate import SourceCandidate
from compilescope.minify.source.edits import (
    Edit,
    Proposing,
    apply,
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


def _propose(present: SourceCandidate) -> Proposing:
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


PASS = Pass("statements", 20, _propose)
