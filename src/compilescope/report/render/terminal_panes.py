"""Code at several stages, for a terminal: one stage after the other, or two side by side."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from compilescope.report.blocks import CodeLine, Pane, Panes
from compilescope.report.render.code_folds import shortened

# Chosen: lines of a stage, about two screens; a note counts the rest.
_MOST_LINES = 60
_BETWEEN = 3


def drawn_panes(block: Panes, width: int) -> RenderableType:
    """One stage after the other: a terminal seldom has room beside them."""
    marked = block.beside and any(line.kin for pane in block.panes for line in pane.lines)
    drawn = [_pane(pane, marked) for pane in block.panes]
    room = (width - _BETWEEN * len(drawn)) // max(len(drawn), 1)
    if not block.beside or any(_widest(lines) > room for lines in drawn):
        return Group(*(line for lines in drawn for line in lines))
    grid = Grid.grid(padding=(0, _BETWEEN, 0, 0))
    grid.add_row(*(Group(*lines) for lines in drawn))
    return grid


def _pane(pane: Pane, marked: bool) -> list[Text]:
    title = Text(pane.title, style="bold")
    if pane.note:
        title.append(f"  {pane.note}", style="dim")
    lines = shortened(pane.lines)
    # One text for all: rich takes its time for each.
    shown = "\n".join(_line(line, marked) for line in lines[:_MOST_LINES])
    drawn = [title, Text(shown, style="cyan", no_wrap=True, overflow="ellipsis")]
    if len(lines) > _MOST_LINES:
        drawn.append(Text(f"  and {len(lines) - _MOST_LINES} more lines", style="dim"))
    return drawn


def _line(line: CodeLine, marked: bool) -> str:
    """With its number in the file, or with the numbers that it shares with related lines."""
    if marked:
        left = f"{','.join(map(str, line.kin)):>3} "
    elif line.number is not None:
        left = f"{line.number:>5} "
    else:
        left = "  "
    return left + line.text.expandtabs(4)


def _widest(lines: list[Text]) -> int:
    return max(len(part) for line in lines for part in line.plain.split("\n"))
