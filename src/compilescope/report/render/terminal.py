"""Blocks for a terminal. Colours only where the caller says the reader has them."""

from __future__ import annotations

import io
from collections.abc import Iterable

import msgspec
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text
from rich.tree import Tree as RichTree

from compilescope.base.patterns import late
from compilescope.report.blocks import (
    Bar,
    Block,
    Branch,
    CodeLine,
    Curves,
    Diff,
    Document,
    Excerpt,
    Facts,
    Figures,
    Fold,
    Heading,
    Heatmap,
    Item,
    Listing,
    Matrix,
    Measures,
    Pane,
    Panes,
    Paragraph,
    Portions,
    Quote,
    Roofline,
    SourceFile,
    Span,
    Style,
    Table,
    Timeline,
    Tree,
    Trend,
    Words,
    note,
)
from compilescope.report.render.charts import (
    curve_strokes,
    curve_summary,
    roofline_summary,
    trend_strokes,
    trend_summary,
)
from compilescope.report.render.code_lines import DiffKind, diff_kind, marked_part, shortened
from compilescope.report.render.grids import fitted_table, shaded
from compilescope.report.render.measures import measure_rows
from compilescope.report.render.portions import portion_cells, portion_groups
from compilescope.report.render.safe_html import is_outside
from compilescope.report.render.source_file import text_lines
from compilescope.report.render.spans import taken
from compilescope.report.render.terminal_rows import (
    print_hanging,
    print_indented,
    print_line,
    print_numbered,
)
from compilescope.report.render.visible_blocks import cleaned, cleaned_document
from compilescope.report.size_limits import TAB, fit_letters, fit_texts

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
"""Columns. Chosen: as Python code is indented."""
_MOST_DIFF_LINES = 400
"""Chosen: far more than a terminal shows; a note counts the rest."""
_MOST_ROWS = 1_000
"""Of a table: nobody reads more, and Rich takes a millisecond for each. Chosen."""
_MOST_BLOCKS = 1_000
"""In a list. Chosen as for rows."""
_MOST_LETTERS = 500_000
"""Of texts in a document. Chosen: some hundred screens; Rich takes microseconds to wrap each."""
_MOST_BARS = 40
"""The longest. Chosen: as many as in markdown."""
# Chosen: lines of a stage, about two screens; a note counts the rest.
_MOST_PANE_LINES = 60
_BETWEEN_PANES = 3
"""Columns. Chosen."""
_MANY_BLANKS = late(r"(?<=[^\S\n]{200})[^\S\n]+")
_PORTIONS = {
    "useful": ("█", "green"),
    "recompile": ("▓", "yellow"),
    "break": ("▒", "red"),
    "failed": ("░", "bold red"),
}
_STROKES = {"graph": "green", "eager": "red", "both": "yellow"}
_DIFF_STYLES: dict[DiffKind, str] = {
    "file": "bold",
    "place": "cyan",
    "added": "green",
    "removed": "red",
    "same": "dim",
}


def to_text(document: Document, *, width: int = 80, colour: bool = False) -> str:
    console = _console(width, colour)
    parts = tuple(
        msgspec.structs.replace(part, blocks=_first_blocks(part.blocks)) for part in document.parts
    )
    document = msgspec.structs.replace(document, parts=parts)
    document = cleaned_document(fit_letters(document, _MOST_LETTERS))
    console.print(Text(document.title, style="bold"))
    if document.subtitle:
        console.print(Text(document.subtitle, style="dim"))
    record = document.record
    if record.ended:
        console.print(Text(record.ended, style=_STYLES[record.ended_style]))
    console.print()
    for part in document.parts:
        if part.title:
            _draw(console, Heading(part.title, part.note), 0)
        _draw_all(console, part.blocks, 0)
    return _written(console)


def blocks_to_text(blocks: Iterable[Block], *, width: int = 80, colour: bool = False) -> str:
    """Blocks that belong to no document."""
    console = _console(width, colour)
    _draw_all(console, cleaned(fit_texts(_first_blocks(blocks), _MOST_LETTERS)), 0)
    return _written(console)


def _console(width: int, colour: bool) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
        # In a notebook, Rich would show each block as an output of the cell and write nothing.
        force_jupyter=False,
    )


def _written(console: Console) -> str:
    """Rich pads lines to the width of the table; nobody wants to copy those blanks."""
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def _draw_all(console: Console, blocks: Iterable[Block], indent: int) -> None:
    for block in _first_blocks(blocks):
        _draw(console, block, indent)


def _first_blocks(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """As many as anybody reads, with as many rows, and notes that count the rest. Done before texts
    are looked at: there may be hundreds of thousands."""
    shown: list[Block] = []
    for block in blocks:
        if isinstance(block, Table | Facts) and len(block.rows) > _MOST_ROWS:
            left = len(block.rows) - _MOST_ROWS
            shown.append(msgspec.structs.replace(block, rows=block.rows[:_MOST_ROWS]))
            block = note(f"and {left:,} more rows; JSON has them all")
        shown.append(block)
    if len(shown) > _MOST_BLOCKS:
        left = len(shown) - _MOST_BLOCKS + 1
        shown[_MOST_BLOCKS - 1 :] = [note(f"and {left:,} more; JSON has them all")]
    return tuple(shown)


def _draw(console: Console, block: Block, indent: int) -> None:
    if isinstance(block, Heading):
        title = Text(f"\n{block.text}", style="bold underline")
        console.print(Text.assemble(title, (f"  {block.note}" if block.note else "", "dim")))
    elif isinstance(block, Paragraph):
        _draw_paragraph(console, block, indent)
    elif isinstance(block, Facts):
        console.print()
        grid = Grid.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(ratio=1)
        for label, value in block.rows:
            grid.add_row(label, _text(value))
        console.print(Padding(grid, (0, 0, 0, max(indent, 2))))
    elif isinstance(block, Figures):
        _draw_figures(console, block, indent)
    elif isinstance(block, Portions):
        _draw_portions(console, block, indent)
    elif isinstance(block, Measures):
        _draw_measures(console, block, indent)
    elif isinstance(block, Trend):
        _draw_trend(console, block, indent)
    elif isinstance(block, Curves):
        _draw_curves(console, block, indent)
    elif isinstance(block, Roofline):
        console.print(Text(f"\n{block.title}: {roofline_summary(block)}"))
    elif isinstance(block, Matrix):
        _draw_all(console, fitted_table(block, console.width - max(indent, 2)), indent)
    elif isinstance(block, Item):
        _draw_item(console, block, indent)
    elif isinstance(block, Fold):
        console.print(Padding(_text(block.summary), (0, 0, 0, indent), style="bold"))
        _draw_all(console, block.blocks, indent + 2)
    elif isinstance(block, Listing):
        _draw_listing(console, block, indent)
    elif isinstance(block, SourceFile):
        _draw_source(console, block, indent)
    elif isinstance(block, Excerpt):
        _draw_excerpt(console, block, indent)
    elif isinstance(block, Diff):
        _draw_diff(console, block, indent)
    elif isinstance(block, Quote):
        _draw_quote(console, block, indent)
    else:
        console.print(Padding(_drawing(console, block), (1, 0, 0, max(indent, 2))))


def _draw_quote(console: Console, block: Quote, indent: int) -> None:
    """With a bar at the left of every line, so that none passes for ours."""
    console.print(Padding(Text(f"{block.speaker}:", "italic"), (0, 0, 0, indent)))
    for line in block.text.splitlines():
        text = Text(line)
        for part in text.wrap(console, max(console.width - indent - 2, 20)) or [text]:
            console.print(Text.assemble(" " * indent, ("│ ", "dim"), part))


def _draw_figures(console: Console, block: Figures, indent: int) -> None:
    console.print()
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(ratio=1)
    for figure in block.figures:
        value = Text(figure.value, style=_STYLES[figure.style] or "bold")
        value.append(f"  {figure.note}" if figure.note else "", style="not bold dim")
        grid.add_row(figure.label, value)
    console.print(Padding(grid, (0, 0, 0, max(indent, 2))))


def _draw_portions(console: Console, block: Portions, indent: int) -> None:
    """The bar, and below it what each stretch stands for, in its own shade."""
    indent = max(indent, 2)
    bar = Text(no_wrap=True)
    for portion, width in portion_cells(block, max(console.width - 2 * indent, 20)):
        shade, style = _PORTIONS.get(portion.kind, ("░", "dim"))
        bar.append(shade * width, style)
    for text in (bar, _legend(block)):
        console.print(Padding(text, (0, 0, 0, indent)))


def _draw_measures(console: Console, block: Measures, indent: int) -> None:
    indent = max(indent, 2)
    if block.title:
        console.print(Padding(Text(block.title, "bold"), (1, 0, 0, indent)))
    for label, bar, text in measure_rows(block):
        row = Text.assemble(" " * indent, f"{label} ", (bar, "cyan"), f" {text}")
        console.print(row, no_wrap=True, overflow="ellipsis")


def _draw_trend(console: Console, block: Trend, indent: int) -> None:
    indent = max(indent, 2)
    if block.title:
        console.print(Padding(Text(block.title, "bold"), (1, 0, 0, indent)))
    strokes = trend_strokes(block)
    line = Text.assemble((f"{strokes}  " if strokes else "", "cyan"))
    console.print(
        Padding(line.append(trend_summary(block), "dim"), (0, 0, 0, indent)),
    )


def _draw_curves(console: Console, block: Curves, indent: int) -> None:
    indent = max(indent, 2)
    console.print(Padding(Text(block.title, "bold"), (1, 0, 0, indent)))
    for curve in block.curves:
        line = Text.assemble(f"{curve.label}  ", (curve_strokes(curve), "cyan"), "  ")
        text = line.append(curve_summary(curve), "dim")
        console.print(Padding(text, (0, 0, 0, indent)))


def _legend(block: Portions) -> Text:
    legend = Text()
    for number, (group, portions) in enumerate(portion_groups(block)):
        shade, style = _PORTIONS.get(portions[0].kind, ("░", "dim"))
        legend.append(" · " if number else "", "dim")
        legend.append(f"{shade} ", style)
        told = ", ".join(f"{portion.label} {portion.text}" for portion in portions)
        legend.append(f"{group}: {told}" if group else told)
    return legend


def _drawing(console: Console, block: Table | Tree | Timeline | Heatmap | Panes) -> RenderableType:
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Tree):
        tree = RichTree("", hide_root=True, guide_style="dim")
        _grow(tree, block.branches)
        return tree
    if isinstance(block, Timeline):
        return _timeline(block, console.width)
    if isinstance(block, Heatmap):
        return Text("\n".join(shaded(block)), no_wrap=True, overflow="crop")
    return _panes(block, console.width)


def _timeline(block: Timeline, width: int) -> RenderableType:
    """The longest bars of each lane in order, each as a stroke on the same scale."""
    room = max(10, min(24, width // 4))
    grid = Grid.grid(padding=(0, 1), expand=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(width=room, no_wrap=True)
    for lane in block.lanes:
        grid.add_row(Text(lane.title, style="bold"))
        longest = sorted(lane.bars, key=lambda bar: -bar.duration_ns)[:_MOST_BARS]
        for bar in sorted(longest, key=lambda bar: (bar.start_ns, bar.depth)):
            name = Text("  " * (min(bar.depth, 8) + 1) + bar.label)
            grid.add_row(name, taken(bar.duration_ns), _bar_stroke(bar, block.duration_ns, room))
        if len(lane.bars) > len(longest):
            rest = f"  and {len(lane.bars) - len(longest)} shorter ones"
            grid.add_row(Text(rest, style="dim"))
    return grid


def _bar_stroke(bar: Bar, whole_ns: int, room: int) -> Text:
    start = min(room - 1, bar.start_ns * room // max(whole_ns, 1))
    length = max(1, min(room - start, round(bar.duration_ns * room / max(whole_ns, 1))))
    return Text(" " * start + "━" * length, style="cyan")


def _panes(block: Panes, width: int) -> RenderableType:
    """One stage after the other: a terminal seldom has room beside them."""
    marked = block.beside and any(line.kin for pane in block.panes for line in pane.lines)
    drawn = [_pane(pane, marked) for pane in block.panes]
    room = (width - _BETWEEN_PANES * len(drawn)) // max(len(drawn), 1)
    if not block.beside or any(_widest_line(lines) > room for lines in drawn):
        return Group(*(line for lines in drawn for line in lines))
    grid = Grid.grid(padding=(0, _BETWEEN_PANES, 0, 0))
    grid.add_row(*(Group(*lines) for lines in drawn))
    return grid


def _pane(pane: Pane, marked: bool) -> list[Text]:
    title = Text(pane.title, style="bold")
    if pane.note:
        title.append(f"  {pane.note}", style="dim")
    lines = shortened(pane.lines)
    # One text for all: rich takes its time for each.
    shown = "\n".join(_pane_line(line, marked) for line in lines[:_MOST_PANE_LINES])
    drawn = [title, Text(shown, style="cyan", no_wrap=True, overflow="ellipsis")]
    if len(lines) > _MOST_PANE_LINES:
        drawn.append(Text(f"  and {len(lines) - _MOST_PANE_LINES} more lines", style="dim"))
    return drawn


def _pane_line(line: CodeLine, marked: bool) -> str:
    """With its number in the file, or with the numbers that it shares with related lines."""
    if marked:
        left = f"{','.join(map(str, line.kin)):>3} "
    elif line.number is not None:
        left = f"{line.number:>5} "
    else:
        left = "  "
    return left + line.text.expandtabs(4)


def _widest_line(lines: list[Text]) -> int:
    return max(len(part) for line in lines for part in line.plain.split("\n"))


def _table(block: Table) -> Grid:
    short = block.one_line is not None
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=short)
    for number, name in enumerate(block.columns):
        right = number in block.numeric
        grid.add_column(
            name,
            justify="right" if right else "left",
            no_wrap=right or short,
            overflow="ellipsis" if short else "fold",
            ratio=1 if number == block.one_line else None,
        )
    for row in block.rows:
        grid.add_row(*(_text(cell) for cell in row))
    return grid


def _grow(tree: RichTree, branches: Iterable[Branch]) -> None:
    for branch in branches:
        label = _text(branch.words)
        if branch.note:
            label = Text.assemble(label, "  ", _text(branch.note))
        _grow(tree.add(label), branch.branches)


def _draw_item(console: Console, block: Item, indent: int) -> None:
    console.print()
    print_numbered(console, block.number, _text(block.left), _text(block.right), indent)
    _draw_all(console, block.blocks, indent + _INDENT)


def _draw_paragraph(console: Console, block: Paragraph, indent: int) -> None:
    if block.unwrapped:
        text = Text.assemble(" " * indent, _text(block.words))
        console.print(text, no_wrap=True, overflow="ignore", crop=False)
        return
    if block.hanging:
        print_hanging(console, block.hanging, _text(block.words), indent)
    else:
        print_indented(console, _text(_addressed(block.words)), indent)


def _addressed(parts: Words) -> Words:
    """A link that stands alone shows its address: not every terminal can follow what it hides."""
    alone = len(parts) == 1 and is_outside(parts[0].url)
    return (msgspec.structs.replace(parts[0], text=parts[0].url),) if alone else parts


def _draw_excerpt(console: Console, block: Excerpt, indent: int) -> None:
    """The line and carets under the expression; a long line is cut to show that part."""
    text = block.text.expandtabs(1)
    lead = len(text) - len(text.lstrip())
    start = max((block.column or 0) - lead, 0)
    stop = (block.end_column if block.end_column is not None else len(text)) - lead
    text = text.lstrip()
    inset = indent + _INDENT
    room = console.width - inset - 2
    if len(text) > room:
        cut = max(0, min(start - room // 4, len(text) - room))
        text = (
            ("…" if cut else "")
            + text[cut : cut + room - 2]
            + ("…" if cut + room - 2 < len(text) else "")
        )
        start, stop = start - cut + bool(cut), stop - cut + bool(cut)
    stop = min(stop, len(text))
    print_line(console, Text.assemble(" " * inset, (text, "cyan")))
    if block.column is not None and stop > start:
        carets = " " * start + "^" * (stop - start)
        print_indented(console, Text(carets, style="bold red"), inset)


def _draw_listing(console: Console, block: Listing, indent: int) -> None:
    digits = len(str(block.first_line + len(block.lines)))
    gutter = indent + digits + 3
    room = console.width - gutter - 1
    for number, line in enumerate(block.lines, block.first_line):
        text = line.expandtabs(1)
        here = number == block.marked_line
        part = marked_part(block, number, text)
        start = part[0] if part else 0
        cut = max(0, min(start - room // 4, len(text) - room)) if part and len(text) > room else 0
        mark = ">" if here else " "
        label = f"{' ' * max(indent - 2, 0)}{mark} {number:>{digits}} │ "
        style = "cyan" if here or part else "dim"
        print_line(console, Text.assemble((label, "dim"), (text[cut : cut + room], style)))
        if part is not None:
            carets = "^" * max(min(part[1], cut + room) - start, 1)
            print_line(console, Text(" " * (gutter + start - cut) + carets, style="bold red"))


def _draw_source(console: Console, block: SourceFile, indent: int) -> None:
    """The lines that lost something and some around them, with the gutter at their left."""
    console.print()
    title = fit_texts((block.title, block.summary), _MOST_LETTERS // _MOST_ROWS)
    heading = Text.assemble((title[0], "bold"), (f"  {title[1]}", "dim"))
    console.print(Padding(heading, (0, 0, 0, indent)))
    for line in text_lines(block):
        left = f"{' ' * indent}{line.gutter}  "
        number = (f"{line.number} ", "" if line.lost else "dim")
        stroke = (f"{line.stroke} ", _STROKES.get(line.kind, "dim"))
        code = (line.text, "cyan" if line.lost else "dim")
        row = Text.assemble((left, "bold red" if line.lost else "dim"), number, stroke, code)
        print_line(console, row, "ellipsis")
        start, stop = line.carets or (0, 0)
        before = len(left) + len(number[0]) + len(stroke[0])
        if start < stop and before + stop <= console.width:
            print_line(console, Text(" " * (before + start) + "^" * (stop - start), "bold red"))


def _draw_diff(console: Console, block: Diff, indent: int) -> None:
    """Each line whole: what is copied from here must be what `patch` takes."""
    lines = block.text.splitlines()
    for line in lines[:_MOST_DIFF_LINES]:
        text = Text(" " * indent + line, style=_DIFF_STYLES[diff_kind(line)])
        console.print(text, no_wrap=True, overflow="ignore", crop=False)
    if len(lines) > _MOST_DIFF_LINES:
        rest = f"and {len(lines) - _MOST_DIFF_LINES} more lines; JSON has them all"
        console.print(Padding(Text(rest, style="dim"), (0, 0, 0, indent)))


def _text(parts: Words) -> Text:
    return Text.assemble(*((_wrappable(part.text), _style(part)) for part in parts))


def _wrappable(text: str) -> str:
    """Tabs are blanks here: Rich would take the text apart at each. And there are no more blanks in
    a row than a line may have: what Rich does at the end of a line grows with their square."""
    return _MANY_BLANKS.sub("", text.expandtabs(TAB))


def _style(part: Span) -> str:
    """With the link that a terminal can follow, however the text is wrapped."""
    leads = is_outside(part.url)
    return f"{_STYLES[part.style]} link {part.url}" if leads else _STYLES[part.style]
