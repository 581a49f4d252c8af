"""Text, figures and code for a learner, drawn by the report's renderers."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compilescope.base.settings import wants_colour
from compilescope.record.byte_counts import shown_bytes
from compilescope.report.blocks import (
    Bar,
    Block,
    CodeLine,
    Heading,
    Lane,
    Measures,
    Pane,
    Panes,
    Paragraph,
    Span,
    Table,
    Timeline,
    Words,
    prose,
    words,
)
from compilescope.report.render.html import to_fragment
from compilescope.report.render.terminal import blocks_to_text

Text = str | tuple[str, str]
"""Code, or its title and the code."""


def show(*things: Block | str) -> None:
    """Draw blocks and text. In text, what stands between backticks is code; a blank line begins a
    new paragraph."""
    blocks = [block for thing in things for block in _blocks(thing)]
    if not _display("text/html", lambda: to_fragment(blocks)):
        write(blocks_to_text(blocks, width=width(), colour=has_colour()))


def bars(title: str, values: Mapping[str, float], unit: str = "ms") -> None:
    """Each value as a horizontal bar on one scale from 0. The unit `bytes` is shown as KiB, MiB."""
    show(Measures(title, tuple((name, float(v), amount(v, unit)) for name, v in values.items())))


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
    """Rows under named columns; columns of numbers stand at the right. Text may hold `code`."""
    given = [tuple(row) for row in rows]
    numeric = tuple(
        at
        for at in range(len(columns))
        if given and all(isinstance(row[at], (int, float)) for row in given)
    )
    drawn = tuple(tuple(_cell(value) for value in row) for row in given)
    heading = [Heading(title)] if title else []
    show(*heading, Table(tuple(columns), drawn, numeric))


def timeline(title: str, spans: Iterable[tuple[str, float, float]]) -> None:
    """What ran when: (name, start in seconds, how many seconds it took). A span inside another is
    set in under it."""
    ordered = sorted(spans, key=lambda span: (span[1], -span[2]))
    begin = min((start for _, start, _ in ordered), default=0.0)
    end = max((start + seconds for _, start, seconds in ordered), default=0.0)
    around: list[float] = []
    drawn = []
    for name, start, seconds in ordered:
        while around and start >= around[-1] - 1e-9:
            around.pop()
        drawn.append(Bar(name, _ns(start - begin), _ns(seconds), depth=len(around)))
        around.append(start + seconds)
    show(Timeline(_ns(end - begin), (Lane(title, tuple(drawn)),)))


def code(text: str, language: str = "python", title: str = "") -> None:
    """A listing."""
    show(Panes((_pane((title or language, text), {}),)))


def beside(left: Text, right: Text, related: Iterable[tuple[int, int]] = ()) -> None:
    """Two listings, side by side where there is room. `related` pairs a line of the left one with a
    line of the right one, counted from 1: both get the same number."""
    pairs = list(related)
    numbers = {line: at for at, line in enumerate(dict.fromkeys(line for line, _ in pairs), 1)}
    lefts = {line: (number,) for line, number in numbers.items()}
    rights: dict[int, tuple[int, ...]] = {}
    for line, other in pairs:
        rights[other] = tuple(sorted({*rights.get(other, ()), numbers[line]}))
    show(Panes((_pane(left, lefts), _pane(right, rights)), beside=True))


def missing(what: str, why: str) -> None:
    """Say that something is not available on this machine; the lesson continues without it."""
    reason = why.strip().rstrip(".")
    reason = reason[:1].upper() + reason[1:]
    show(Paragraph(words(Span(f"Not on this machine: {what}. ", "warn"), *prose(f"{reason}."))))


def amount(value: float, unit: str) -> str:
    """A number for people, with its unit."""
    if unit == "bytes":
        return shown_bytes(int(value))
    return f"{number(value)} {unit}".rstrip()


def number(value: float) -> str:
    """Three digits that matter; whole numbers stay whole."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3g}"


def show_html(html: str) -> bool:
    """In a notebook draw this; False where there is none."""
    return _display("text/html", lambda: html)


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def width() -> int:
    return max(60, min(shutil.get_terminal_size((80, 24)).columns, 100))


def has_colour() -> bool:
    wanted = wants_colour()
    return sys.stdout.isatty() if wanted is None else wanted


def _display(kind: str, draw: Any) -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return False  # A script, or IPython in a terminal.
    sys.stdout.flush()
    ipython.display.display({kind: draw()}, raw=True)  # type: ignore[union-attr]
    return True


def _blocks(thing: Block | str) -> list[Block]:
    if not isinstance(thing, str):
        return [thing]
    paragraphs = thing.strip("\n").split("\n\n")
    return [Paragraph(prose(paragraph)) for paragraph in paragraphs]


def _cell(value: Any) -> Words:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return prose(str(value)) or words("")
    return words(number(value))


def _pane(text: Text, related: Mapping[int, tuple[int, ...]]) -> Pane:
    title, content = ("", text) if isinstance(text, str) else text
    lines = content.lstrip("\n").rstrip().split("\n")
    drawn = (CodeLine(line, related.get(at, ())) for at, line in enumerate(lines, 1))
    return Pane(title, tuple(drawn))


def _ns(seconds: float) -> int:
    return max(round(seconds * 1e9), 0)
