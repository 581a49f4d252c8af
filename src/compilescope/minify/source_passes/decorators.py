"""Removes decorators, and `async` from functions, loops and `with`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from compilescope.minify.engine import Pass
from compilescope.minify.source.edits import Edit, edit, in_runs, remove, walk


def _find(tree: cst.Module) -> Iterator[list[Edit]]:
    yield [remove(node) for node in walk(tree) if isinstance(node, cst.Decorator)]
    yield [
        edit(node, lambda each: each.with_changes(asynchronous=None))
        for node in walk(tree)
        if isinstance(node, (cst.FunctionDef, cst.For, cst.With)) and node.asynchronous
    ]


PASS = Pass("decorators", 40, in_runs(_find))
