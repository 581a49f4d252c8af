"""What begins and ends on a line of a file: parsed once, and looked at no further than asked."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator

import msgspec

Node = tuple[ast.AST, tuple[ast.AST, ...]]
"""With its ancestors, its parent first."""
_MOST_STEPS = 20_000
"""Nodes looked at for single lines. Chosen: after so many it is cheaper to look at the whole file
once."""


class ParsedLine(msgspec.Struct):
    nodes: list[Node] = msgspec.field(default_factory=list)
    """Expressions and statements that begin on it."""
    attributes: list[Node] = msgspec.field(default_factory=list)
    """`.name` that ends on it."""
    starts: set[int] = msgspec.field(default_factory=set)
    """Where anything begins, in bytes."""


class ParsedFile(msgspec.Struct):
    tree: ast.Module
    _lines: dict[int, ParsedLine] = msgspec.field(default_factory=dict)
    _steps: int = 0
    _is_whole: bool = False

    def line(self, number: int) -> ParsedLine:
        if number not in self._lines and not self._is_whole:
            self._is_whole = self._steps > _MOST_STEPS
            found = self._read(None if self._is_whole else number)
            self._lines.update(found if self._is_whole else {number: found[number]})
        return self._lines.get(number) or ParsedLine()

    def _read(self, only: int | None) -> dict[int, ParsedLine]:
        """Every line; or one, and what else is in the statements around it."""
        found: dict[int, ParsedLine] = {} if only is None else {only: ParsedLine()}
        for node, ancestors in _walk(self.tree, only):
            self._steps += 1
            number = getattr(node, "lineno", None)
            if number is not None:
                line = found.setdefault(number, ParsedLine())
                line.starts.add(node.col_offset)  # type: ignore[attr-defined]
                if isinstance(node, (ast.expr, ast.stmt)):
                    line.nodes.append((node, ancestors))
            if isinstance(node, ast.Attribute) and node.end_lineno is not None:
                found.setdefault(node.end_lineno, ParsedLine()).attributes.append((node, ancestors))
        return found


def _walk(tree: ast.Module, only: int | None) -> Iterator[Node]:
    stack: list[Node] = [(tree, ())]
    while stack:
        node, ancestors = stack.pop()
        yield node, ancestors
        inner = (node, *ancestors)
        stack.extend((child, inner) for child in _children(node, only))


def _children(node: ast.AST, only: int | None) -> Iterator[ast.AST]:
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            yield value
        elif isinstance(value, list) and value:
            if only is not None and isinstance(value[0], ast.stmt):
                yield from _around(value, only)
            else:
                yield from (each for each in value if isinstance(each, ast.AST))


def _around(body: list[ast.stmt], line: int) -> Iterator[ast.stmt]:
    """The statements that reach over a line: in a body they stand in their order."""
    for statement in body[bisect_left(body, line, key=_last) :]:
        if _first(statement) > line:
            break
        yield statement


def _first(statement: ast.stmt) -> int:
    """A decorator stands before the line that its function is said to begin on."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def _last(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno
