"""The user's source around a place: the expression, its statement, its function.

Works from the text that the run kept; where there is none, from the one line of the stack.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from compilescope.model.run import Run


@dataclass(frozen=True)
class Place:
    """A line, and a stretch of it where columns are known."""

    file: str
    line: int
    column: int | None = None
    end_column: int | None = None
    source: str = ""


@dataclass(frozen=True)
class Spot:
    """What stands at a place."""

    place: Place
    expression: ast.expr | None = None
    """The expression that begins at the column."""
    statement: ast.stmt | None = None
    function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    ancestors: tuple[ast.AST, ...] = ()
    """From the expression's parent outwards."""

    @property
    def text(self) -> str:
        """The expression as its author wrote it."""
        if self.expression is not None:
            return ast.unparse(self.expression)
        if isinstance(self.statement, (ast.If, ast.While, ast.Assert)):
            return ast.unparse(self.statement.test)
        source, column = self.place.source, self.place.column
        if column is not None and self.place.end_column is not None:
            return source[column : self.place.end_column]
        return source.strip()

    @property
    def several_lines(self) -> bool:
        """Does the expression go on in later lines?"""
        end = self.expression.end_lineno if self.expression is not None else None
        return end is not None and end > self.place.line

    @property
    def in_finally(self) -> bool:
        for node in self._inside_function():
            if isinstance(node, ast.Try) and node.finalbody:
                return self.place.line >= node.finalbody[0].lineno
        return False

    @property
    def in_loop(self) -> bool:
        loops = (ast.For, ast.While, ast.AsyncFor)
        return any(isinstance(node, loops) for node in self._inside_function())

    @property
    def in_comprehension(self) -> bool:
        kinds = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        own = isinstance(self.expression, kinds)
        return own or any(isinstance(node, kinds) for node in self._inside_function())

    @property
    def in_try(self) -> bool:
        return any(isinstance(node, ast.Try) for node in self._inside_function())

    def enclosing(self, *kinds: type[ast.AST]) -> ast.AST | None:
        """The nearest ancestor of one of these kinds, within the function."""
        return next((node for node in self._inside_function() if isinstance(node, kinds)), None)

    def _inside_function(self) -> list[ast.AST]:
        found: list[ast.AST] = []
        for node in self.ancestors:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                break
            found.append(node)
        return found


@dataclass
class Sources:
    """The files of a run, parsed once each."""

    run: Run
    _lines: dict[str, list[str]] = field(default_factory=dict)
    _by_line: dict[str, dict[int, list[tuple[ast.AST, tuple[ast.AST, ...]]]]] = field(
        default_factory=dict
    )

    def lines(self, file: str) -> list[str]:
        if file not in self._lines:
            self._lines[file] = (self.run.source_of(file) or "").splitlines()
        return self._lines[file]

    def spot(self, place: Place) -> Spot:
        nodes = self._index(place.file).get(place.line, [])
        if not nodes:
            return _from_line(place)
        start = _byte(place.source, place.column)
        end = _byte(place.source, place.end_column)
        expression, ancestors = _expression(nodes, place.line, start, end)
        if expression is None:
            statements = [(n, a) for n, a in nodes if isinstance(n, ast.stmt)]
            if not statements:
                return _from_line(place)
            statement, ancestors = statements[-1]
            return Spot(place, None, _stmt(statement), _function(ancestors), ancestors)
        owner = next((n for n in ancestors if isinstance(n, ast.stmt)), None)
        return Spot(place, expression, owner, _function(ancestors), ancestors)

    def _index(self, file: str) -> dict[int, list[tuple[ast.AST, tuple[ast.AST, ...]]]]:
        """Line -> the nodes that begin on it, each with its ancestors."""
        if file in self._by_line:
            return self._by_line[file]
        index: dict[int, list[tuple[ast.AST, tuple[ast.AST, ...]]]] = {}
        self._by_line[file] = index
        text = self.run.source_of(file)
        if text is None:
            return index
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return index
        stack: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(tree, ())]
        while stack:
            node, ancestors = stack.pop()
            if isinstance(node, (ast.expr, ast.stmt)):
                index.setdefault(node.lineno, []).append((node, ancestors))
            inner = (node, *ancestors)
            stack.extend((child, inner) for child in ast.iter_child_nodes(node))
        return index


def _expression(
    nodes: list[tuple[ast.AST, tuple[ast.AST, ...]]], line: int, start: int | None, end: int | None
) -> tuple[ast.expr | None, tuple[ast.AST, ...]]:
    if start is None:
        return None, ()
    here = [(n, a) for n, a in nodes if isinstance(n, ast.expr) and n.col_offset == start]
    exact = [(n, a) for n, a in here if n.end_lineno == line and n.end_col_offset == end]
    # Without a known end the outermost expression is meant: the one with the fewest ancestors.
    # An expression of several lines ends at its column of a later line.
    later = [(n, a) for n, a in here if (n.end_lineno or line) > line and n.end_col_offset == end]
    candidates = exact or later or (here if end is None else [])
    if not candidates:
        return None, ()
    node, ancestors = min(candidates, key=lambda item: len(item[1]))
    assert isinstance(node, ast.expr)
    return node, ancestors


def _from_line(place: Place) -> Spot:
    """All there is: one line of text. A header line is completed so that it parses."""
    text = place.source.strip()
    for candidate in (text, f"{text}\n    pass", f"if 1:\n    pass\n{text}\n    pass"):
        try:
            statement = ast.parse(candidate).body[-1]
        except (SyntaxError, ValueError, IndexError):
            continue
        return Spot(place, _part(statement, place), statement, None, (statement,))
    return Spot(place)


def _part(statement: ast.stmt, place: Place) -> ast.expr | None:
    if place.column is None or place.end_column is None:
        return None
    indent = len(place.source) - len(place.source.lstrip())
    start, end = place.column - indent, place.end_column - indent
    for node in ast.walk(statement):
        if isinstance(node, ast.expr) and (node.col_offset, node.end_col_offset) == (start, end):
            return node
    return None


def _byte(source: str, column: int | None) -> int | None:
    if column is None or column > len(source):
        return column  # Beyond this line: the column of a later one.
    return len(source[:column].encode())


def _stmt(node: ast.AST | None) -> ast.stmt | None:
    return node if isinstance(node, ast.stmt) else None


def _function(ancestors: tuple[ast.AST, ...]) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    for node in ancestors:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return node
    return None
