"""Which function of a file a line belongs to, from the text that the run kept."""

from __future__ import annotations

import ast

from compilescope.model.run import Run

_Extent = tuple[int, int]


class Extents:
    """The functions of a run's files, parsed once each."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._files: dict[str, dict[str, list[_Extent]]] = {}

    def first_line(self, file: str, function: str, line: int) -> int | None:
        """Of the innermost function of that name around the line; None where it is not known.

        As for Python, a function begins at its first decorator.
        """
        found = [
            (first, last)
            for first, last in self._functions(file).get(function, ())
            if first <= line <= last
        ]
        return max(found)[0] if found else None

    def _functions(self, file: str) -> dict[str, list[_Extent]]:
        if file not in self._files:
            self._files[file] = _functions(self._run.source_of(file) or "")
        return self._files[file]


def _functions(text: str) -> dict[str, list[_Extent]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[str, list[_Extent]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found.setdefault(node.name, []).append((first, node.end_lineno or first))
        elif isinstance(node, ast.Lambda):
            extent = (node.lineno, node.end_lineno or node.lineno)
            found.setdefault("<lambda>", []).append(extent)
    return found
