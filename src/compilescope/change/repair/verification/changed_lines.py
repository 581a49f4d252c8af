"""The statements that a change touches, in the old texts and in the new ones, and which ran.

Comments, blank lines and docstrings are no statements. Of a function's header it counts whether its
body ran: that the function is defined says nothing.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from compilescope.change.repair.trials.version import Changes

_ABOUT_COMPILING = ("compile", "_dynamo", "mark_dynamic", "mark_static", "inductor", "stance")
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
Ran = Mapping[tuple[str, int], bool]
"""(file, line) that ran: was it in a compiled region?"""


@dataclass(frozen=True)
class ChangedStatement:
    """A statement, or the header of a block, that is not in both versions."""

    file: str
    line: int
    lines: frozenset[int]
    """If one of them runs, it ran."""
    source: str
    is_import: bool = False

    @property
    def is_about_compiling(self) -> bool:
        """Does it say how something is compiled? What comes of that shows in compiled regions."""
        return any(word in self.source for word in _ABOUT_COMPILING)

    def ran(self, lines: Ran) -> bool:
        return any((self.file, line) in lines for line in self.lines)

    def ran_inside(self, lines: Ran) -> bool:
        return any(lines.get((self.file, line), False) for line in self.lines)


@dataclass(frozen=True)
class ChangedCode:
    """All of them."""

    old: tuple[ChangedStatement, ...]
    new: tuple[ChangedStatement, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.old or self.new)


def changed_code(changes: Changes) -> ChangedCode:
    old: list[ChangedStatement] = []
    new: list[ChangedStatement] = []
    for file, change in changes.files.items():
        before, after = _parsed(change.old_text), _parsed(change.new_text)
        if before is not None and after is not None and _is_same_code(before, after):
            continue
        gone = change.removed | change.indented
        come = change.added | {change.new_of[line] for line in change.indented}
        found = list(_touched(before, gone, file)), list(_touched(after, come, file))
        if not any(found):
            # An `else` that came or went: which statements it is about is not looked for.
            every = range(1, max(map(_lines_of, (change.old_text, change.new_text))) + 1)
            found = list(_touched(before, every, file)), list(_touched(after, every, file))
        old += found[0]
        new += found[1]
    return ChangedCode(tuple(old), tuple(new))


def lines_to_watch(statements: Iterable[ChangedStatement]) -> dict[str, set[int]]:
    """By file."""
    found: dict[str, set[int]] = {}
    for each in statements:
        found.setdefault(each.file, set()).update(each.lines)
    return found


def places_of(statements: Iterable[ChangedStatement]) -> list[str]:
    """`train.py:12-14`: neighbours together."""
    by_file: dict[str, set[int]] = {}
    for each in statements:
        by_file.setdefault(each.file, set()).add(each.line)
    found = []
    for file, lines in by_file.items():
        name = os.path.basename(file)
        for first, last in _runs_of(sorted(lines)):
            found.append(f"{name}:{first}" if first == last else f"{name}:{first}-{last}")
    return found


def _runs_of(lines: list[int]) -> Iterator[tuple[int, int]]:
    first = last = lines[0]
    for line in lines[1:]:
        if line != last + 1:
            yield first, last
            first = line
        last = line
    yield first, last


def _lines_of(text: str) -> int:
    return text.count("\n") + 1


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _is_same_code(before: ast.Module, after: ast.Module) -> bool:
    return _dumped(before) == _dumped(after)


def _dumped(tree: ast.Module) -> str:
    tree = ast.parse(ast.unparse(tree))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            body[0].value.value = ""
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _touched(
    tree: ast.Module | None, lines: Collection[int], file: str
) -> Iterator[ChangedStatement]:
    if tree is None:
        return
    wanted = set(lines)
    for node in ast.walk(tree):
        if isinstance(node, (*_Function, ast.ClassDef)):
            for mark in node.decorator_list:
                span = range(mark.lineno, (mark.end_lineno or mark.lineno) + 1)
                if wanted.intersection(span):
                    yield _statement(file, mark, span)
        if not isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case) or _is_text(node):
            continue
        head = _head(node)
        if head is None or not wanted.intersection(head):
            continue
        if isinstance(node, _Function):
            inner = [part for part in node.body if not _is_text(part)]
            yield _statement(file, node, _body_lines(inner) or head)
        elif not isinstance(node, (ast.Global, ast.Nonlocal, ast.Pass)):
            yield _statement(file, node, head)


def _statement(file: str, node: ast.AST, lines: Iterable[int]) -> ChangedStatement:
    line = getattr(node, "lineno", 1)
    source = ast.unparse(node).partition("\n")[0]
    is_import = isinstance(node, (ast.Import, ast.ImportFrom))
    return ChangedStatement(file, line, frozenset(lines), source, is_import)


def _head(node: ast.AST) -> range | None:
    """Its own lines, without those of a block under it."""
    line = getattr(node, "lineno", None)
    if line is None:
        pattern = getattr(node, "pattern", None)
        line = getattr(pattern, "lineno", None)
    if line is None:
        return None
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if isinstance(body, list) and body:
        first = body[0]
        marks = getattr(first, "decorator_list", None) or []
        inner = min([_line_of(first), *(mark.lineno for mark in marks)])
        return range(line, max(inner, line + 1))
    return range(line, (getattr(node, "end_lineno", None) or line) + 1)


def _line_of(node: ast.AST) -> int:
    found = getattr(node, "lineno", None)
    return int(found if found is not None else getattr(node, "pattern").lineno)  # noqa: B009


def _body_lines(body: list[ast.stmt]) -> set[int]:
    """The lines of a body that say that it ran; not those of functions that it defines."""
    found: set[int] = set()
    for node in body:
        found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found
