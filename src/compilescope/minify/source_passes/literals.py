"""Makes numbers smaller and strings shorter; equal numbers shrink together first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from compilescope.minify.deletion import smallest_number
from compilescope.minify.engine import Pass
from compilescope.minify.source.candidate import SourceCandidate
from compilescope.minify.source.edits import Edit, Proposing, apply, reparsed, replace, values

Done = list[Edit]


def _propose(present: SourceCandidate) -> Proposing:
    tree = reparsed(present)
    done: Done = []
    numbers = [node for node in values(tree) if isinstance(node, cst.Integer)]
    left: dict[cst.Integer, int] = {}
    for value in sorted({_value(node) for node in numbers}, reverse=True):
        alike = [node for node in numbers if _value(node) == value]
        for group in [alike, *([node] for node in alike)] if len(alike) > 1 else [alike]:
            now = left.get(group[0], value)
            found = yield from smallest_number(now, _making(tree, done, group))
            if found < now:
                done.append(_all(group, str(found)))
                left.update(dict.fromkeys(group, found))
    for node in values(tree):
        for text in _simpler(node):
            candidate = apply(tree, [*done, _all([node], text)])
            if candidate is not None and (yield candidate):
                done.append(_all([node], text))
                break


def _making(
    tree: cst.Module, done: Done, group: Sequence[cst.CSTNode]
) -> Callable[[int], SourceCandidate | None]:
    return lambda number: apply(tree, [*done, _all(group, str(number))])


def _all(nodes: Sequence[cst.CSTNode], text: str) -> Edit:
    return tuple(change for node in nodes for change in replace(node, cst.parse_expression(text)))


def _value(node: cst.Integer) -> int:
    return int(node.evaluated_value)


def _simpler(node: cst.BaseExpression) -> list[str]:
    if isinstance(node, cst.Float):
        return [text for text in ("0.0", "1.0", "2.0") if len(text) <= len(node.value)]
    if isinstance(node, cst.ConcatenatedString):
        return ['""']
    if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str):
        value = node.evaluated_value
        return ['""', repr(value[:1])] if len(value) > 1 else ['""'] * bool(value)
    return []


PASS = Pass("literals", 220, _propose)
