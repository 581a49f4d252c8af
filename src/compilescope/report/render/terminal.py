"""Blocks for a terminal. Colours only where the caller says the reader has them."""

from __future__ import annotations

import io

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from compilescope.report.blocks import (
    Block,
    Document,
    Excerpt,
    Facts,
    Heading,
    Item,
    Listing,
    Paragraph,
    Style,
    Words,
)

_STYLES: dict[Style, str] = {
    "plain": "",
    "strong": "bold",
    "dim": "dim",
    "code": "cyan",
    "good": "bold green",
    "warn": "yellow",
    "bad": "bold red",
}
_INDENT = 4


def to_text(document: Document, *, width: int = 80, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    console.print(Text(_printable(document.title), style="bold"))
    if document.subtitle:
        console.print(Text(_printable(document.subtitle), style="dim"))
    console.print()
    for block in document.blocks:
        _draw(console, block)
    # Rich pads lines to the width of the table; nobody wants to copy those blanks.
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _draw(console: Console, block: Block) -> None:
    if isinstance(block, Heading):
        title = Text(f"\n{block.text}", style="bold underline")
        console.print(Text.assemble(title, (f"  {block.note}" if block.note else "", "dim")))
    elif isinstance(block, Paragraph):
        _draw_paragraph(console, block)
    elif isinstance(block, Facts):
        console.print()
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(ratio=1)
        for label, value in block.rows:
            table.add_row(label, _text(value))
        console.print(Padding(table, (0, 0, 0, 2)))
    elif isinstance(block, Item):
        console.print()
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(width=3, justify="right", style="dim")
        table.add_column(ratio=1, overflow="fold")
        table.add_column(justify="right", no_wrap=True)
        table.add_row(block.number, _text(block.left), _text(block.right))
        console.print(table)
    elif isinstance(block, Listing):
        _draw_listing(console, block)
    else:
        _draw_excerpt(console, block)


def _draw_paragraph(console: Console, block: Paragraph) -> None:
    indent = block.depth * _INDENT
    if not block.hanging:
        console.print(Padding(_text(block.words), (0, 0, 0, indent)))
        return
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(ratio=1, overflow="fold")
    table.add_row(block.hanging, _text(block.words))
    console.print(Padding(table, (0, 0, 0, indent)))


def _draw_excerpt(console: Console, block: Excerpt) -> None:
    """The line and carets under the expression; a long line is cut to show that part."""
    text = _printable(block.text.expandtabs(1))
    lead = len(text) - len(text.lstrip())
    start = max((block.column or 0) - lead, 0)
    stop = (block.end_column if block.end_column is not None else len(text)) - lead
    text = text.lstrip()
    room = console.width - 2 * _INDENT - 2
    if len(text) > room:
        cut = max(0, min(start - room // 4, len(text) - room))
        text = (
            ("…" if cut else "")
            + text[cut : cut + room - 2]
            + ("…" if cut + room - 2 < len(text) else "")
        )
        start, stop = start - cut + bool(cut), stop - cut + bool(cut)
    stop = min(stop, len(text))
    console.print(Padding(Text(text, style="cyan", no_wrap=True), (0, 0, 0, 2 * _INDENT)))
    if block.column is not None and stop > start:
        carets = " " * start + "^" * (stop - start)
        console.print(Padding(Text(carets, style="bold red"), (0, 0, 0, 2 * _INDENT)))


def _draw_listing(console: Console, block: Listing) -> None:
    digits = len(str(block.first_line + len(block.lines)))
    gutter = _INDENT + digits + 3
    room = console.width - gutter - 1
    for number, line in enumerate(block.lines, block.first_line):
        text = _printable(line.expandtabs(1))
        here = number == block.marked_line
        start = block.column or 0
        cut = max(0, min(start - room // 4, len(text) - room)) if here and len(text) > room else 0
        mark = ">" if here else " "
        label = f"{' ' * (_INDENT - 2)}{mark} {number:>{digits}} │ "
        style = "cyan" if here else "dim"
        console.print(Text.assemble((label, "dim"), (text[cut : cut + room], style)), no_wrap=True)
        if here and block.column is not None:
            stop = block.end_column if block.end_column is not None else len(text)
            carets = "^" * max(min(stop, cut + room) - start, 1)
            console.print(
                Text(" " * (gutter + start - cut) + carets, style="bold red"), no_wrap=True
            )


def _text(parts: Words) -> Text:
    return Text.assemble(*((_printable(part.text), _STYLES[part.style]) for part in parts))


def _printable(text: str) -> str:
    """What a program wrote must not steer the reader's terminal."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
