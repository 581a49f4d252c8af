"""Statements: whole functions and classes first, then what is inside those that stay.

After each depth, definitions that nothing names any more go at once: what is inside them is not
asked about one by one.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from compilescope.minify.deletion import delete_runs
from compilescope.minify.engine import Pass
from compilescope.minify.source.candidate import SourceCandidate
from compilescope.minify.source.edits import Edit, Proposing, apply, remove, reparsed
from compilescope.minify.source.nodes import statements_by_depth
from compilescope.minify.source.unused import without_unused


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
