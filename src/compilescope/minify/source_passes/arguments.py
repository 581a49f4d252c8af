"""Removes arguments of calls, base classes, indices, and elements of lists, tuples and the like."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from compilescope.minify.engine import Pass
from compilescope.minify.source.edits import Edit, in_runs, remove, values, walk


def _find(tree: cst.Module) -> Iterator[list[Edit]]:
    arguments = [node for node in walk(tree) if isinstance(node, cst.Arg)][::-1]
    yield [remove(node) for node in arguments if node.keyword is not None or node.star]
    yield [remove(node) for node in arguments if node.keyword is None and not node.star]
    yield [remove(node) for node in _elements(tree)]
    yield [remove(node) for node in walk(tree) if isinstance(node, cst.SubscriptElement)][::-1]


def _elements(tree: cst.Module) -> list[cst.CSTNode]:
    found: list[cst.CSTNode] = []
    for node in values(tree):
        if isinstance(node, (cst.List, cst.Tuple, cst.Set, cst.Dict)):
            found += node.elements
    return found[::-1]


PASS = Pass("arguments", 140, in_runs(_find))
