"""Definitions, assignments and imports of a module that nothing in it names any more."""

from __future__ import annotations

from collections import Counter
from typing import Any

import libcst as cst

from compilescope.minify.source.candidate import SourceCandidate
from compilescope.minify.source.edits import Edit, apply, remove, reparsed
from compilescope.minify.source.nodes import names_in, walk


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
