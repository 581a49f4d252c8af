"""Which function of a file a line belongs to, from the text that the run kept."""

from __future__ import annotations

import ast

from compilescope.analysis.brief import is_long
from compilescope.model.python_text import parse_python
from compilescope.model.run import Run

_Extent = tuple[int, int]
_MOST_LETTERS = 3_000_000
"""Of all texts that are parsed for one tree, about 0.3 s each million. Chosen: it bounds the time
that a report takes; functions of later files are told apart by the lines that are known of them, as
where nobody kept the text."""
_LETTERS_OF_LONG = 1_000_000
"""The same of a long run, whose report is slow as it is. Chosen; benchmarks/big_runs.py holds a
page to 10 s."""

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
_LAMBDA = "<lambda>"


class Extents:
    """The functions of a run's files, found once each."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._files: dict[tuple[str, bool], dict[str, list[_Extent]]] = {}
        self._room = _LETTERS_OF_LONG if is_long(run) else _MOST_LETTERS

    def first_line(self, file: str, function: str, line: int) -> int | None:
        """Of the innermost function of that name around the line; None where it is not known.

        As for Python, a function begins at its first decorator.
        """
        found = [
            (first, last)
            for first, last in self._functions(file, function == _LAMBDA).get(function, ())
            if first <= line <= last
        ]
        return max(found)[0] if found else None

    def _functions(self, file: str, lambdas: bool) -> dict[str, list[_Extent]]:
        if (file, lambdas) not in self._files:
            text = (self._run.source_of(file) or "") if self._room > 0 else ""
            self._room -= len(text)
            self._files[file, lambdas] = (_lambdas if lambdas else _functions)(text)
        return self._files[file, lambdas]


def _functions(text: str) -> dict[str, list[_Extent]]:
    """Expressions hold no statements: a walk of the statements alone is ten times as fast."""
    found: dict[str, list[_Extent]] = {}
    waiting: list[ast.AST] = [_parsed(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found.setdefault(node.name, []).append((first, node.end_lineno or first))
        for name in _BODIES:
            below = getattr(node, name, None)
            if isinstance(below, list):
                waiting += below
    return found


def _lambdas(text: str) -> dict[str, list[_Extent]]:
    lambdas = (node for node in ast.walk(_parsed(text)) if isinstance(node, ast.Lambda))
    return {_LAMBDA: [(node.lineno, node.end_lineno or node.lineno) for node in lambdas]}


def _parsed(text: str) -> ast.Module:
    try:
        return parse_python(text)
    except SyntaxError:
        return ast.Module([], [])
