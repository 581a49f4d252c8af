"""The user's source behind a graph: the functions its nodes came from, line by line.

Where the run kept no text of a file, only the lines that nodes name are known.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

import msgspec

from compilescope.knowledge.analysis.stages.line_links import Family
from compilescope.knowledge.analysis.stages.printed_graph import Place
from compilescope.knowledge.source.spots import Sources
from compilescope.record.graph import Graph
from compilescope.record.python_text import parse_python

_WHOLE = 60
"""Functions up to this many lines are shown whole. Chosen: a screen or two."""
_AROUND = 2
"""Lines around one that a node came from, in longer functions. Chosen: as little as shows the
place."""


class SourceLine(msgspec.Struct, frozen=True):
    """A line to show."""

    text: str
    number: int | None = None
    kin: tuple[int, ...] = ()


class Functions(msgspec.Struct):
    """Where the functions of a run's files begin and end, found once a file."""

    sources: Sources
    _spans: dict[str, list[tuple[int, int]]] = msgspec.field(default_factory=dict)

    def span(self, file: str, line: int) -> tuple[int, int] | None:
        """The innermost function around a line."""
        around = [span for span in self.spans(file) if span[0] <= line <= span[1]]
        return min(around, key=lambda span: span[1] - span[0], default=None)

    def spans(self, file: str) -> list[tuple[int, int]]:
        """First and last line of each function, in no order."""
        if file not in self._spans:
            self._spans[file] = list(_spans("\n".join(self.sources.lines(file))))
        return self._spans[file]


def _spans(text: str) -> Iterable[tuple[int, int]]:
    try:
        waiting: list[ast.AST] = [parse_python(text)]
    except SyntaxError:
        return
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield first, node.end_lineno or node.lineno
        # Expressions hold no statements: a walk of the statements alone is ten times as fast.
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            children = getattr(node, name, None)
            if isinstance(children, list):
                waiting.extend(children)


def source_lines(
    family: Family,
    caught: Graph | None,
    functions: Functions,
    name: Callable[[str], str] = str,
) -> list[SourceLine]:
    """Each function that nodes came from or were called through, in the order of the graph."""
    known = _known_lines(family, caught)
    shown: list[SourceLine] = []
    files = list(dict.fromkeys(file for file, _ in known))
    for file in files:
        lines = functions.sources.lines(file)
        places = [line for other, line in known if other == file]
        shown.append(SourceLine(f"# {name(file)}"))
        if not lines:
            for line in sorted(places):
                shown.append(SourceLine(known[file, line], line, _kin(family, (file, line))))
            continue
        previous = 0
        for number in _chosen(file, sorted(places), functions, len(lines)):
            if previous and number != previous + 1:
                shown.append(SourceLine("⋯"))
            previous = number
            shown.append(SourceLine(lines[number - 1], number, _kin(family, (file, number))))
    return shown


def _chosen(file: str, places: list[int], functions: Functions, length: int) -> list[int]:
    """Short functions whole; of longer ones, and outside functions, what is near a place."""
    chosen: set[int] = set()
    for line in places:
        if not 1 <= line <= length:
            continue
        span = functions.span(file, line)
        if span is not None and span[1] - span[0] < _WHOLE:
            chosen.update(range(span[0], span[1] + 1))
            continue
        chosen.update(range(max(line - _AROUND, 1), min(line + _AROUND, length) + 1))
        if span is not None:
            chosen.add(span[0])
    return sorted(chosen)


def _known_lines(family: Family, caught: Graph | None) -> dict[Place, str]:
    """Lines that nodes name, with what is known of their text, in the order of the graph."""
    known: dict[Place, str] = {}
    stacks = caught.stacks if caught is not None else ()
    nodes = caught.nodes if caught is not None else ()
    frames = [frame for stack in stacks for frame in stack]
    frames += [node.frame for node in nodes if node.frame is not None]
    texts = {(frame.file, frame.line): frame.source for frame in frames}
    for stage in family.stages:
        texts.update({p: code for p, (_, code) in stage.printed.codes.items() if not texts.get(p)})
    for place in (*family.calls, *family.places):
        known.setdefault(place, texts.get(place, ""))
    return known


def _kin(family: Family, place: Place) -> tuple[int, ...]:
    return tuple(sorted(family.places.get(place, set()) | family.calls.get(place, set())))
