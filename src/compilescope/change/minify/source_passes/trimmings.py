"""Removes what stands around the statements: comments, annotations, decorators, imported names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from compilescope.change.minify.engine import Pass
from compilescope.change.minify.source.edits import (
    Change,
    Edit,
    edit,
    in_runs,
    is_docstring,
    names_in,
    remove,
    walk,
)


def _trimmings(tree: cst.Module) -> Iterator[list[Edit]]:
    """Removes comments, docstrings, annotations and empty lines: little depends on them."""
    yield [edit(tree, lambda module: module.visit(_WithoutComments()))]
    yield [remove(node) for node in walk(tree) if is_docstring(node)]
    yield [each for node in walk(tree) for each in _annotations(node)]


def _annotations(node: cst.CSTNode) -> Iterator[Edit]:
    if isinstance(node, cst.Param) and node.annotation is not None:
        yield edit(node, lambda param: param.with_changes(annotation=None))
    if isinstance(node, cst.FunctionDef) and node.returns is not None:
        yield edit(node, lambda function: function.with_changes(returns=None))
    if isinstance(node, cst.AnnAssign):
        yield edit(node, _plain)


def _plain(node: cst.AnnAssign) -> Any:
    if node.value is None:
        return cst.RemoveFromParent()
    return cst.Assign([cst.AssignTarget(node.target)], node.value)


class _WithoutComments(cst.CSTTransformer):
    def leave_TrailingWhitespace(
        self, original_node: cst.TrailingWhitespace, updated_node: cst.TrailingWhitespace
    ) -> cst.TrailingWhitespace:
        return cst.TrailingWhitespace() if updated_node.comment else updated_node

    def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> Any:
        return cst.RemoveFromParent()


def _decorators(tree: cst.Module) -> Iterator[list[Edit]]:
    """Removes decorators, and `async` from functions, loops and `with`."""
    yield [remove(node) for node in walk(tree) if isinstance(node, cst.Decorator)]
    yield [
        edit(node, lambda each: each.with_changes(asynchronous=None))
        for node in walk(tree)
        if isinstance(node, (cst.FunctionDef, cst.For, cst.With)) and node.asynchronous
    ]


def _imported_names(tree: cst.Module) -> Iterator[list[Edit]]:
    """Removes single names from imports of several; whole statements are left to `statements`."""
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


PASSES = (
    Pass("trimmings", 10, in_runs(_trimmings)),
    Pass("decorators", 40, in_runs(_decorators)),
    Pass("imports", 60, in_runs(_imported_names)),
)
