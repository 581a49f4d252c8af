"""Moves the value of a variable that is set once and read once to where it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from compilescope.minify.engine import Pass
from compilescope.minify.source.edits import Edit, closed, names_in, one_by_one, walk


def _find(tree: cst.Module) -> Iterator[list[Edit]]:
    for body in _bodies(tree):
        names = [name for line in body for name in names_in(line)]
        for line in body:
            target, value = _assigned(line)
            if target is None:
                continue
            same = [name for name in names if name.value == target.value and name is not target]
            if len(same) == 1:
                yield [_moved(line, same[0], value)]


def _bodies(tree: cst.Module) -> Iterator[Sequence[Any]]:
    yield tree.body
    for node in walk(tree):
        if isinstance(node, cst.IndentedBlock):
            yield node.body


def _assigned(line: Any) -> tuple[cst.Name | None, Any]:
    only = line.body[0] if isinstance(line, cst.SimpleStatementLine) and line.body else None
    if not isinstance(only, cst.Assign) or len(line.body) != 1 or len(only.targets) != 1:
        return None, None
    target = only.targets[0].target
    return (target, only.value) if isinstance(target, cst.Name) else (None, None)


def _moved(line: Any, name: cst.Name, value: Any) -> Edit:
    return (
        (name, lambda _: closed(value.deep_clone())),
        (line, lambda _: cst.RemoveFromParent()),
    )


PASS = Pass("variables", 120, one_by_one(_find))
