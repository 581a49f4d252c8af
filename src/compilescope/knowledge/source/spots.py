"""The user's source around a place: the expression, its statement, its function.

Works from the text that the run kept; where there is none, from the one line of the stack. A file
is parsed once, and looked at no further than asked.
"""

from __future__ import annotations

import ast
import functools
from bisect import bisect_left
from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from compilescope.knowledge.source.outline import Outline, outline_of
from compilescope.record.python_text import parse_python
from compilescope.record.run import Run

Node: TypeAlias = "tuple[ast.AST, tuple[ast.AST, ...]]"
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
    _outline: Outline | None = None

    @property
    def outline(self) -> Outline:
        if self._outline is None:
            self._outline = outline_of(self.tree)
        return self._outline

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


_Nodes = list[Node]
_MOST_LETTERS = 700_000
"""Of texts that are kept, parsed or as lines. Chosen: a tree takes a hundred times its text's
memory, so 70 MB."""

_MOST_RECENT = 60_000
"""Of the texts whose trees others may share. Chosen: a few files of the usual length."""


class Place(msgspec.Struct, frozen=True):
    """A line, and a stretch of it where columns are known."""

    file: str
    line: int
    column: int | None = None
    end_column: int | None = None
    source: str = ""


class Stretch(msgspec.Struct, frozen=True):
    """Where an expression begins on its line and where it ends, in characters."""

    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    """On `end_line`: the first that no longer belongs to it."""


class SourceSpot(msgspec.Struct, frozen=True):
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
    def in_finally(self) -> bool:
        for node in self._inside_function():
            if isinstance(node, ast.Try) and node.finalbody:
                return self.place.line >= node.finalbody[0].lineno
        return False

    @property
    def in_comprehension(self) -> bool:
        kinds = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        own = isinstance(self.expression, kinds)
        return own or any(isinstance(node, kinds) for node in self._inside_function())

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


class Sources(msgspec.Struct):
    """The files of a run, parsed once each as long as they are not too many to keep: whoever looks
    at thousands of places looks at them file by file."""

    run: Run
    _lines: dict[str, list[str]] = msgspec.field(default_factory=dict)
    _files: dict[str, ParsedFile | None] = msgspec.field(default_factory=dict)
    _letters: dict[str, int] = msgspec.field(default_factory=dict)
    """Of the texts of those, the oldest first."""
    _recent: dict[str, ParsedFile | None] = msgspec.field(default_factory=dict)
    """By the texts that were parsed last: files that were copied to many places are parsed once."""
    _all_letters: int = 0

    def has(self, file: str) -> bool:
        """Did the run keep its text?"""
        return self.run.keeps_source(file)

    def lines(self, file: str) -> list[str]:
        if file not in self._lines:
            self._lines[file] = self._text(file).splitlines()
        return self._lines[file]

    def _text(self, file: str) -> str:
        text = self.run.source_of(file) or ""
        if file not in self._letters:
            while self._letters and self._all_letters + len(text) > _MOST_LETTERS:
                self._forget(next(iter(self._letters)))
            self._letters[file] = len(text)
            self._all_letters += len(text)
        return text

    def _forget(self, file: str) -> None:
        self._all_letters -= self._letters.pop(file)
        self._lines.pop(file, None)
        self._files.pop(file, None)

    def outline(self, file: str) -> Outline | None:
        """None where there is no text of it that can be parsed."""
        parsed = self._parsed(file)
        return parsed.outline if parsed is not None else None

    def spot(self, place: Place) -> SourceSpot:
        parsed = self._parsed(place.file)
        if parsed is None:
            return _from_line(place)
        line = parsed.line(place.line)
        nodes = line.nodes
        start = _byte(place.source, place.column)
        end = _byte(place.source, place.end_column)
        expression, ancestors = _expression(nodes, place.line, start, end)
        if expression is None:
            expression, ancestors = _method(line.attributes, place.line, start, end)
        if expression is None:
            expression, ancestors = _tested(nodes, start, end)
        if expression is None:
            statements = [(n, a) for n, a in nodes if isinstance(n, ast.stmt)]
            if not statements:
                return _from_line(place)
            statement, ancestors = statements[-1]
            return SourceSpot(place, None, _stmt(statement), _function(ancestors), ancestors)
        owner = next((n for n in ancestors if isinstance(n, ast.stmt)), None)
        return SourceSpot(place, expression, owner, _function(ancestors), ancestors)

    def class_of(self, file: str, line: int, function: str) -> str:
        """The class whose body defines the function that begins on this line; empty for none."""
        parsed = self._parsed(file)
        body = parsed.tree.body if parsed is not None else []
        owner = ""
        while body:
            for statement in _around(body, line):
                if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    if statement.name == function and _first(statement) == line:
                        return owner
                    owner = ""
                elif isinstance(statement, ast.ClassDef):
                    owner = statement.name
                body = getattr(statement, "body", [])
                break
            else:
                body = []
        return ""

    def stretch(self, spot: SourceSpot) -> Stretch:
        """The expression from its begin to its end.

        torch gives the columns without the line of the end, those of a whole `if` for its test,
        and after a break now and then those of another line: such columns are worth nothing.
        """
        place = spot.place
        if place.column is None:
            return Stretch()
        parsed = self._parsed(place.file)
        line = parsed.line(place.line) if parsed is not None else ParsedLine()
        nodes = line.nodes
        if parsed and spot.expression is not None and spot.expression.end_lineno is not None:
            return self._reaching(place, spot.expression)
        start, end = _byte(place.source, place.column), _byte(place.source, place.end_column)
        if parsed is not None and start not in line.starts:
            return Stretch()
        statement = _statement(nodes, start, end)
        if statement is not None:
            return self._reaching(place, statement)
        return _on_line(spot, whole=not _is_compound(nodes, start))

    def _reaching(self, place: Place, node: ast.expr | ast.stmt) -> Stretch:
        """To the end of an expression. Its begin stays where torch saw it, if that is within."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        column = place.column
        if node.lineno == place.line:
            column = _character(place.source, node.col_offset)
        lines = self.lines(place.file)
        last = lines[node.end_lineno - 1] if node.end_lineno <= len(lines) else ""
        return Stretch(column, node.end_lineno, _character(last, node.end_col_offset))

    def _parsed(self, file: str) -> ParsedFile | None:
        """None where there is no text of it that can be parsed."""
        if file not in self._files:
            text = self._text(file)
            if text not in self._recent:
                while self._recent and sum(map(len, self._recent)) + len(text) > _MOST_RECENT:
                    del self._recent[next(iter(self._recent))]
                self._recent[text] = _parse(text)
            self._files[file] = self._recent[text]
        return self._files[file]


def _parse(text: str) -> ParsedFile | None:
    if not text:
        return None
    try:
        tree = parse_python(text)
    except SyntaxError:
        return None
    return ParsedFile(tree) if tree.body else None


def _expression(
    nodes: _Nodes, line: int, start: int | None, end: int | None
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


def _method(
    attributes: _Nodes, line: int, start: int | None, end: int | None
) -> tuple[ast.expr | None, tuple[ast.AST, ...]]:
    """The call of a method whose name stands on a later line than what it is called on.

    There Python says where the name begins, and not where the expression does.
    """
    for node, ancestors in attributes:
        assert isinstance(node, ast.Attribute) and node.end_col_offset is not None
        if node.lineno == line or node.end_col_offset - len(node.attr.encode()) != start:
            continue
        above = ancestors[0] if ancestors else None
        if isinstance(above, ast.Call) and above.func is node and end != node.end_col_offset:
            return above, ancestors[1:]
        return node, ancestors
    return None, ()


def _tested(
    nodes: _Nodes, start: int | None, end: int | None
) -> tuple[ast.expr | None, tuple[ast.AST, ...]]:
    """The test of the `if` or `while` whose columns these are: Python jumps for the whole of it."""
    for node, ancestors in nodes:
        if not isinstance(node, (ast.If, ast.While)):
            continue
        if node.col_offset == start and end in (None, node.end_col_offset):
            return node.test, (node, *ancestors)
    return None, ()


def _statement(nodes: _Nodes, start: int | None, end: int | None) -> ast.stmt | None:
    """The statement without a body that begins and ends at these columns."""
    for node, _ in nodes:
        if not isinstance(node, ast.stmt) or hasattr(node, "body"):
            continue
        if (node.col_offset, node.end_col_offset) == (start, end):
            return node
    return None


def _on_line(spot: SourceSpot, *, whole: bool) -> Stretch:
    """As far as the one line tells. `whole`: its columns may be those of an expression."""
    place, statement = spot.place, spot.statement
    source, column, end = place.source, place.column, place.end_column
    indent = len(source) - len(source.lstrip())
    if isinstance(statement, (ast.If, ast.While)) and column == indent:
        test = statement.test
        if source[indent:].startswith(_KEYWORDS) and test.lineno == test.end_lineno == 1:
            stop = indent + _character(source[indent:], test.end_col_offset or 0)
            start = indent + _character(source[indent:], test.col_offset)
            return Stretch(start, place.line, stop)
    width = len(source.rstrip().rstrip(":"))
    if column is None or column >= width:
        return Stretch(column, place.line, end)  # The line itself is not known.
    fits = whole and end is not None and column < end <= width
    return Stretch(column, place.line, end if fits else width)


_KEYWORDS = ("if", "while")


def _is_compound(nodes: _Nodes, start: int | None) -> bool:
    """Does a statement with a body begin there? Its columns end with its body."""
    return any(
        isinstance(node, ast.stmt) and hasattr(node, "body") and node.col_offset == start
        for node, _ in nodes
    )


def _from_line(place: Place) -> SourceSpot:
    """All there is: one line of text. A header line is completed so that it parses."""
    statement = _only_statement(place.source.strip())
    if statement is None:
        return SourceSpot(place)
    return SourceSpot(place, _part(statement, place), statement, None, (statement,))


@functools.lru_cache(256)
def _only_statement(text: str) -> ast.stmt | None:
    """Kept for a while: generated code has one line at thousands of places."""
    if not text:
        return None
    for candidate in (text, f"{text}\n    pass", f"if 1:\n    pass\n{text}\n    pass"):
        try:
            body = parse_python(candidate).body
        except SyntaxError:
            continue
        if body:
            return body[-1]
    return None


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


def _character(source: str, offset: int) -> int:
    return len(source.encode()[:offset].decode(errors="ignore"))


def _stmt(node: ast.AST | None) -> ast.stmt | None:
    return node if isinstance(node, ast.stmt) else None


def _function(ancestors: tuple[ast.AST, ...]) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    for node in ancestors:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return node
    return None
