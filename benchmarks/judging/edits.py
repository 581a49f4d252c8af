"""Edits of a text at the places of its syntax tree: all else stays as it is written."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

Functions = (ast.FunctionDef, ast.AsyncFunctionDef)
_ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Dict)
_Node = TypeVar("_Node", bound=ast.AST)


class Edit(NamedTuple):
    """One text in the place of another. Offsets are of bytes, as the tree has them."""

    begin: int
    end: int
    text: str


class Written(NamedTuple):
    """A changed text, and what was done to it."""

    operator: str
    line: int
    function: str
    """Around it, with its classes."""
    old: str
    new: str
    text: str


class Source:
    """A text and its tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._bytes = text.encode()
        self._starts = [0]
        for row in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(row))
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(self.tree):
            for inner in ast.iter_child_nodes(node):
                self.parents[inner] = node
        self._dumped = ast.dump(self.tree)

    def segment(self, node: ast.AST) -> str:
        begin, end = self.span(node)
        return self._bytes[begin:end].decode()

    def span(self, node: ast.AST) -> tuple[int, int]:
        line, column = getattr(node, "lineno"), getattr(node, "col_offset")  # noqa: B009
        end, last = getattr(node, "end_lineno"), getattr(node, "end_col_offset")  # noqa: B009
        return self._starts[line - 1] + column, self._starts[end - 1] + last

    def between(self, begin: int, end: int) -> str:
        return self._bytes[begin:end].decode()

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What it is part of, from the inside outwards."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function_of(self, node: ast.AST) -> str:
        names = [each.name for each in self.above(node) if isinstance(each, _NAMED)]
        return ".".join(reversed(names))

    def in_place_of(self, node: ast.AST, new: ast.AST) -> Edit:
        """An expression for another one; in brackets, where it is part of one."""
        text = ast.unparse(new)
        inside = isinstance(self.parents.get(node), (ast.expr, ast.keyword))
        if (inside and not isinstance(new, _ATOMS)) or (
            isinstance(new, ast.Tuple) and not isinstance(self.parents.get(node), ast.Return)
        ):
            text = f"({text})"
        return Edit(*self.span(node), text)

    def written(self, operator: str, at: ast.AST, *edits: Edit) -> Written | None:
        """None where that is no program, or the same one."""
        data = self._bytes
        old, new = [], []
        for edit in sorted(edits, reverse=True):
            old.append(data[edit.begin : edit.end].decode())
            new.append(edit.text)
            data = data[: edit.begin] + edit.text.encode() + data[edit.end :]
        text = data.decode()
        try:
            if ast.dump(ast.parse(text)) == self._dumped:
                return None
        except (SyntaxError, ValueError):
            return None
        shown = [" ... ".join(reversed(each)) for each in (old, new)]
        line = getattr(at, "lineno", 1)
        return Written(operator, line, self.function_of(at), shown[0], shown[1], text)


Change = tuple[ast.AST, Sequence[Edit]]
"""Where it is, and what is written there."""
Maker = Callable[[Source, ast.AST], Iterator[Change]]


def each_change(
    source: Source, wanted: Callable[[Source, ast.AST], bool], makers: Mapping[str, Maker]
) -> list[Written]:
    """What the makers make of the wanted nodes, each text once, in the order of the source."""
    found: dict[str, Written] = {}
    for node in filter(lambda node: wanted(source, node), ast.walk(source.tree)):
        for operator, make in makers.items():
            for at, edits in make(source, node):
                written = source.written(operator, at, *edits)
                if written is not None:
                    found.setdefault(written.text, written)
    return sorted(found.values(), key=lambda each: (each.line, each.operator, each.new))


_NAMED = (*Functions, ast.ClassDef)


def changed(node: _Node, **fields: object) -> _Node:
    """A copy in which some fields are others."""
    found = copy.copy(node)
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def is_text(node: ast.AST) -> bool:
    """A docstring, mostly."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def called(node: ast.AST) -> str:
    """The last name of what is called; empty where that is no name."""
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


def is_of_module(node: ast.AST) -> bool:
    """`torch.x`, `F.x`: a function of a module, not a method of a value."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in MODULES


MODULES = frozenset({"torch", "F", "nn", "functional", "math", "np", "numpy"})
