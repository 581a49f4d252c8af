"""Removes single names from imports of several; whole statements are left to `statements`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from compilescope.minify.engine import Pass
from compilescope.minify.source.edits import Change, Edit, edit, in_runs, names_in, walk


def _find(tree: cst.Module) -> Iterator[list[Edit]]:
    drops: list[tuple[cst.CSTNode, cst.ImportAlias]] = []
    for node in walk(tree):
        if not isinstance(node, (cst.Import, cst.ImportFrom)):
            continue
        if not isinstance(node.names, cst.ImportStar) and len(node.names) > 1:
            drops += [(node, alias) for alias in node.names]
    used = {name.value for name in names_in(tree)}
    # Most of those that nothing names go at once.
    yield [edit(node, _without(alias)) for node, alias in drops if _bound(alias) not in used]
    yield [edit(node, _without(alias)) for node, alias in reversed(drops)]


def _bound(alias: cst.ImportAlias) -> str:
    name: Any = alias.asname.name if alias.asname else alias.name
    while isinstance(name, cst.Attribute):
        name = name.value
    return str(name.value)


def _without(alias: cst.ImportAlias) -> Change:
    wanted = alias.evaluated_name, alias.evaluated_alias

    def change(node: Any) -> Any:
        left = [a for a in node.names if (a.evaluated_name, a.evaluated_alias) != wanted]
        if not left:
            return cst.RemoveFromParent()
        left[-1] = left[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return node.with_changes(names=left)

    return change


PASS = Pass("imports", 60, in_runs(_find))
