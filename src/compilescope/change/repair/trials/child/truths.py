"""Notes what the conditions of a change came to: a question that had one answer whenever it was
asked shows nothing of what the code does on the other.

Each comparison, each call that gives a truth and each part of a condition in some lines is put into
a call that looks at its value and hands it on. Of a tensor of truths every element counts. Lines
and columns stay what they are.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import operator
from collections.abc import Collection, Iterator
from typing import Any

_NAME, _COMPARE = "__compilescope_truth__", "__compilescope_compare__"
Place = tuple[str, int, int]
"""A file, a line, a column."""
_seen: dict[Place, set[bool]] = {}
_ties: dict[Place, bool] = {}
"""Of comparisons by size: were both sides ever equal?"""
_listening = False
"""Of this process."""
_BY_SIZE = {"Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge}


def note_truths(tree: ast.Module, file: str, lines: Collection[int]) -> ast.Module:
    """The same program, whose conditions in these lines are noted from now on."""
    setattr(builtins, _NAME, _note)
    setattr(builtins, _COMPARE, _compare)
    wrapped: ast.Module = _Wrapper(file, set(lines)).visit(tree)
    return ast.fix_missing_locations(wrapped)


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """What is asked in the block counts: calls that are compared."""
    global _listening
    _listening = True
    try:
        yield
    finally:
        _listening = False


def truths() -> list[list[Any]]:
    """Of each condition: file, line, column, and the truths that were seen; none: it never ran."""
    return [[*place, sorted(seen)] for place, seen in sorted(_seen.items())]


def ties() -> list[list[Any]]:
    """Of each comparison by size: file, line, column, and whether both sides were ever equal."""
    return [[*place, seen] for place, seen in sorted(_ties.items())]


def _compare(file: str, line: int, column: int, name: str, left: Any, right: Any) -> Any:
    found = _BY_SIZE[name](left, right)
    if _listening:
        place = (file, line, column)
        equal = _truths_of(left == right, False) or set()
        _ties[place] = _ties.get(place, False) or True in equal
    return found


def _note(file: str, line: int, column: int, asked: bool, value: Any) -> Any:
    seen = _truths_of(value, asked) if _listening else None
    if seen is not None:
        _seen.setdefault((file, line, column), set()).update(seen)
    return value


def _truths_of(value: Any, asked: bool) -> set[bool] | None:
    """`asked`: it stands where a truth is asked for, whatever it is; a number elsewhere is none."""
    import torch

    if isinstance(value, torch.Tensor):
        if not asked and value.dtype is not torch.bool:
            return None
        found = value.detach() != 0
        return {bool(each) for each in found.unique()} if found.numel() else set()
    if isinstance(value, bool) or asked:
        # What a class of the user's would be asked here, it would be asked once more.
        known = isinstance(value, (bool, int, float, str, bytes, list, tuple, dict, set))
        return {bool(value)} if known else {value is not None}
    return None


class _Wrapper(ast.NodeTransformer):
    def __init__(self, file: str, lines: set[int]) -> None:
        self._file, self._lines = file, lines

    def visit_If(self, node: ast.If) -> Any:
        return self._with_test(node)

    def visit_While(self, node: ast.While) -> Any:
        return self._with_test(node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return self._with_test(node)

    def visit_Assert(self, node: ast.Assert) -> Any:
        return self._with_test(node)

    def _with_test(self, node: Any) -> Any:
        self.generic_visit(node)
        node.test = self._noted(node.test, asked=True)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.generic_visit(node)
        node.ifs = [self._noted(each, asked=True) for each in node.ifs]
        return node

    def visit_match_case(self, node: ast.match_case) -> Any:
        # A pattern is no expression: only what is asked beside it.
        node.body = [self.visit(each) for each in node.body]
        if node.guard is not None:
            node.guard = self._noted(self.visit(node.guard), asked=True)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        node.values = [self._noted(each, asked=True) for each in node.values]
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            node.operand = self._noted(node.operand, asked=True)
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        noted = self._noted(node, asked=False)
        name = type(node.ops[0]).__name__
        if noted is node or len(node.ops) > 1 or name not in _BY_SIZE:
            return noted
        parts: list[str | int] = [self._file, node.lineno, node.col_offset, name]
        sides = [node.left, node.comparators[0]]
        constants = [ast.Constant(part) for part in parts]
        call = ast.Call(ast.Name(_COMPARE, ast.Load()), [*constants, *sides], [])
        noted.args[-1] = ast.copy_location(call, node)  # type: ignore[attr-defined]
        return noted

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        # `super()` looks at the frame that calls it, which stays the same; its name must stand.
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super"
        return node if is_super else self._noted(node, asked=False)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self._without_marks(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return self._without_marks(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return self._without_marks(node)

    def _without_marks(self, node: Any) -> Any:
        """Decorators are left alone: they give functions."""
        node.body = [self.visit(each) for each in node.body]
        return node

    def _noted(self, node: ast.expr, *, asked: bool) -> ast.expr:
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if not self._lines.intersection(lines) or _is_noted(node):
            return node
        parts: list[str | int] = [self._file, node.lineno, node.col_offset, asked]
        call = ast.Call(
            ast.Name(_NAME, ast.Load()), [*(ast.Constant(part) for part in parts), node], []
        )
        return ast.copy_location(call, node)


def _is_noted(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == _NAME
