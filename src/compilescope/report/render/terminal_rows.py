"""Rows of a few cells, laid out without a table: a long report has thousands of them.

What comes out is what a Rich table of the same cells draws. Cells that do
not fit that simply are left to a table.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console, OverflowMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_LEAST_ROOM = 24
"""Columns for the text of a row: where there is less, a table knows better what gives way."""


def print_indented(console: Console, text: Text, indent: int) -> None:
    """A text, each line of it behind as many blanks."""
    lines = _wrapped(console, text, console.width - indent)
    _print(console, (Text.assemble(" " * indent, line) for line in lines))


def print_hanging(console: Console, label: str, text: Text, indent: int) -> None:
    """A bold label, and at its right the lines of a text."""
    room = console.width - indent - len(label) - 1
    if _is_simple(label) and "\t" not in text.plain and room >= _LEAST_ROOM:
        _print(console, _beside(indent, label, "bold", _wrapped(console, text, room)))
        return
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(ratio=1, overflow="fold")
    grid.add_row(label, text)
    console.print(Padding(grid, (0, 0, 0, indent)))


def print_numbered(console: Console, number: str, left: Text, right: Text, indent: int) -> None:
    """A dim number, the lines of a text, and at the right edge of the first a short one."""
    digits, end = max(len(number), 3), len(right.plain)
    # A table makes an empty cell a column wide.
    room = console.width - indent - digits - 1 - max(end, 1) - 1
    simple = _is_simple(number) and _is_simple(right.plain) and "\t" not in left.plain
    if simple and room >= _LEAST_ROOM:
        lines = _wrapped(console, left, room)
        rows = _beside(indent, number.rjust(digits), "dim", lines)
        if end:
            rows[0].append(" " * (room - cell_len(lines[0].plain) + 1)).append_text(right)
        _print(console, rows)
        return
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(min_width=3, justify="right", style="dim", no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_row(number, left, right)
    console.print(Padding(grid, (0, 0, 0, indent)))


def print_line(console: Console, line: Text, overflow: OverflowMethod = "fold") -> None:
    """One line; what it has no room for is cut off as `overflow` says."""
    if _fits(line.plain, console.width):
        _print(console, (line,))
    else:
        console.print(line, no_wrap=True, overflow=overflow)


def _fits(plain: str, width: int) -> bool:
    return "\n" not in plain and "\t" not in plain and cell_len(plain) <= width


def _wrapped(console: Console, text: Text, width: int) -> list[Text]:
    if _fits(text.plain, width):
        return [text]
    return list(text.wrap(console, width))


def _beside(indent: int, start: str, style: str, lines: list[Text]) -> list[Text]:
    before = " " * indent
    blanks = (" " * (len(start) + 1), style)
    first = Text.assemble(before, (start, style), (" ", style), lines[0])
    return [first, *(Text.assemble(before, blanks, line) for line in lines[1:])]


def _print(console: Console, lines: Iterable[Text]) -> None:
    """Lines that fit already."""
    if not console.is_terminal:
        # Without colours there is nothing for Rich to do, which takes its time for it.
        console.file.write("".join(f"{line.plain}\n" for line in lines))
        return
    whole = Text("\n").join(lines)
    console.print(whole, no_wrap=True, overflow="ignore", crop=False)


def _is_simple(text: str) -> bool:
    """One line, a column a letter, to its last letter."""
    return text.isprintable() and cell_len(text) == len(text) and not text.endswith(" ")
