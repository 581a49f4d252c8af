"""Removes comments, docstrings, annotations and empty lines, on which hardly anything depends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from compilescope.minify.engine import Pass
from compilescope.minify.source.edits import Edit, edit, in_runs, is_docstring, remove, walk


def _find(tree: cst.Module) -> Iterator[list[Edit]]:
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


PASS = Pass("trimmings", 10, in_runs(_find))
