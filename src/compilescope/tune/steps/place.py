"""A place in the user's source that is passed once a step: the body of a loop, or of a function.

It is found again in a text that was changed elsewhere: by its function, and by how the loop begins.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import msgspec

from compilescope.source.refusals import Refused

MARK = "__compilescope_step__"
"""What a mark calls. A name among the builtins, so that no import is needed."""
_Loop = ast.For | ast.While | ast.AsyncFor
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class StepPlace(msgspec.Struct, frozen=True):
    """Where a step begins."""

    file: str
    line: int
    function: str
    """Its qualified name; empty at module level."""
    head: str = ""
    """`for x in data`; empty where it is the function itself."""
    nth: int = 0
    """Of the loops that begin like this in that function."""

    @property
    def words(self) -> str:
        return f"{self.function} at" if not self.head else "the loop at"


def all_loops(file: str, text: str) -> list[StepPlace]:
    """An outer one comes before those within it."""
    try:
        return [place for _, place in _loops(file, ast.parse(text))]
    except (SyntaxError, ValueError, RecursionError):
        return []


def loops_around(file: str, text: str, line: int) -> list[StepPlace]:
    """The loops around a line that belong to the same function, the outermost first."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = [
        (node, place)
        for node, place in _loops(file, tree)
        if node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)
    ]
    inmost = max((place.function for _, place in found), key=len, default="")
    return [place for _, place in found if place.function == inmost]


def function_place(file: str, text: str, name: str) -> StepPlace | None:
    """The function of that name, or of that qualified name."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for node, qualified in _functions(tree):
        if name in (qualified, node.name):
            return StepPlace(file, node.lineno, qualified)
    return None


def marked(text: str, places: Sequence[StepPlace]) -> str:
    """The text with a mark at each place, that says its number. Raises `Refused`."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    marks: list[tuple[int, int, str]] = []
    for number, place in enumerate(places):
        node = _node_of(tree, place)
        if node is None:
            raise Refused(f"the change hides the step of line {place.line}")
        first = _first_statement(node)
        top = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))])
        marks.append((top, _column(lines[first.lineno - 1], first), f"{MARK}({number})"))
    for line, column, call in sorted(marks, reverse=True):
        before = lines[line - 1][:column]
        if before.strip():  # `for x in data: step(x)`.
            lines[line - 1] = f"{before}{call}; {lines[line - 1][column:]}"
        else:
            lines.insert(line - 1, f"{before}{call}\n")
    made = "".join(lines)
    ast.parse(made)
    return made


def _column(line: str, node: ast.stmt) -> int:
    """In letters; `ast` counts bytes."""
    return len(line.encode()[: node.col_offset].decode())


def _first_statement(node: _Loop | _Function) -> ast.stmt:
    first = node.body[0]
    text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    documented = isinstance(node, _Function) and text and len(node.body) > 1
    return node.body[1] if documented else first


def _node_of(tree: ast.Module, place: StepPlace) -> _Loop | _Function | None:
    if not place.head:
        return next((n for n, name in _functions(tree) if name == place.function), None)
    for node, other in _loops(place.file, tree):
        if (other.function, other.head, other.nth) == (place.function, place.head, place.nth):
            return node
    return None


def _loops(file: str, tree: ast.Module) -> Iterator[tuple[_Loop, StepPlace]]:
    """An outer one comes before those within it."""
    seen: dict[tuple[str, str], int] = {}
    for node, function in _walk(tree, ""):
        if isinstance(node, _Loop):
            head = _head(node)
            nth = seen.get((function, head), 0)
            seen[function, head] = nth + 1
            yield node, StepPlace(file, node.lineno, function, head, nth)


def _functions(tree: ast.Module) -> Iterator[tuple[_Function, str]]:
    for node, around in _walk(tree, ""):
        if isinstance(node, _Function):
            yield node, f"{around}.{node.name}" if around else node.name


def _walk(node: ast.AST, around: str) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        yield child, around
        named = isinstance(child, (*_Function.__args__, ast.ClassDef))
        inner = (f"{around}.{child.name}" if around else child.name) if named else around  # type: ignore[attr-defined]
        yield from _walk(child, inner)


def _head(node: _Loop) -> str:
    if isinstance(node, ast.While):
        return f"while {ast.unparse(node.test)}"
    return f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
