"""Blocks as GitHub-flavoured markdown: for issues, pull requests and job summaries."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compilescope.report.blocks import (
    Block,
    Branch,
    Diff,
    Document,
    Excerpt,
    Facts,
    Figures,
    Fold,
    Heading,
    Heatmap,
    Item,
    Lane,
    Listing,
    Matrix,
    Measures,
    Pane,
    Panes,
    Paragraph,
    Portions,
    SourceFile,
    Span,
    Table,
    Timeline,
    Trend,
    Words,
    words,
)
from compilescope.report.render.addresses import is_outside
from compilescope.report.render.folding import shortened
from compilescope.report.render.heatmap import shaded
from compilescope.report.render.marking import marked_part
from compilescope.report.render.matrix import fitted_table
from compilescope.report.render.measures import MEASURE_CELLS, measure_rows
from compilescope.report.render.portions import portion_shares
from compilescope.report.render.printable import printable
from compilescope.report.render.source_file import text_lines
from compilescope.report.render.spans import duration, taken
from compilescope.report.render.trend import trend_strokes, trend_summary

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")
_MOST_BARS = 40
_MOST_LINES = 200
_MATRIX_WIDTH = 120


def to_markdown(document: Document) -> str:
    parts = [f"# {_escape(document.title)}"]
    if document.subtitle:
        parts.append(_code(document.subtitle))
    if document.record.ended:
        parts.append(_span(Span(document.record.ended, document.record.ended_style)))
    for part in document.parts:
        if part.title:
            parts.append(_heading(part.title, part.note, "##"))
        parts += [_block(block) for block in part.blocks]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return _heading(block.text, block.note, "###")
    if isinstance(block, Paragraph):
        hanging = f"**{_escape(block.hanging)}** " if block.hanging not in ("", "-") else ""
        return ("- " if block.hanging == "-" else hanging) + _words(block.words)
    if isinstance(block, Facts):
        rows = [f"| {_escape(label)} | {_words(value)} |" for label, value in block.rows]
        return "\n".join(["| | |", "|---|---|", *rows])
    if isinstance(block, Figures):
        return _figures(block)
    if isinstance(block, Portions):
        return _portions(block)
    if isinstance(block, Measures):
        return _measures(block)
    if isinstance(block, Trend):
        return _trend(block)
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Matrix):
        return "\n\n".join(map(_block, fitted_table(block, _MATRIX_WIDTH)))
    if isinstance(block, Item):
        right = f" · {_words(block.right)}" if block.right else ""
        title = f"### {_escape(block.number)}. {_words(block.left)}{right}"
        return "\n\n".join([title, *map(_block, block.blocks)])
    if isinstance(block, Fold):
        return _fold(block.summary, map(_block, block.blocks))
    if isinstance(block, Timeline):
        return "\n\n".join(_lane(lane) for lane in block.lanes)
    if isinstance(block, Heatmap):
        return "\n".join(["```text", *shaded(block), "```"])
    if isinstance(block, Panes):
        return "\n\n".join(_fold(_pane_title(pane), [_pane(pane)]) for pane in block.panes)
    if isinstance(block, Listing):
        return _listing(block)
    if isinstance(block, SourceFile):
        return _source(block)
    if isinstance(block, Excerpt):
        return _excerpt(block)
    if isinstance(block, Diff):
        fence = _fence(block.text)
        return f"{fence}diff\n{block.text.rstrip()}\n{fence}"
    return "\n".join(_branches(block.branches, 0))


def _heading(text: str, note: str, marks: str) -> str:
    return f"{marks} {_escape(text)}" + (f" — {_escape(note)}" if note else "")


def _fold(summary: Words, inside: Iterable[str]) -> str:
    # Inside <summary> GitHub reads HTML, where a backslash escapes nothing.
    label = "".join(part.text for part in summary)
    for mark, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        label = label.replace(mark, name)
    label = " ".join(label.split())
    return "\n\n".join([f"<details><summary>{label}</summary>", *inside, "</details>"])


def _table(block: Table) -> str:
    rule = ["---:" if number in block.numeric else "---" for number in range(len(block.columns))]
    lines = [_row(map(_escape, block.columns)), _row(rule)]
    return "\n".join(lines + [_row(map(_words, row)) for row in block.rows])


def _figures(block: Figures) -> str:
    """Labels above, the numbers below."""
    rule = ["---:"] * len(block.figures)
    values = [f"**{_escape(figure.value)}**" for figure in block.figures]
    lines = [_row(_escape(figure.label) for figure in block.figures), _row(rule), _row(values)]
    if any(figure.note for figure in block.figures):
        lines.append(_row(_escape(figure.note) for figure in block.figures))
    return "\n".join(lines)


def _portions(block: Portions) -> str:
    told = (
        f"{_escape(portion.label)} **{_escape(portion.text)}** ({100 * share:.0f} %)"
        for portion, share in portion_shares(block)
    )
    return f"{_escape(block.title)}: **{_escape(block.text)}** = {' + '.join(told)}"


def _measures(block: Measures) -> str:
    lines = [f"{label} {bar:<{MEASURE_CELLS}} {text}" for label, bar, text in measure_rows(block)]
    fence = _fence("\n".join(lines))
    title = [f"**{_escape(block.title)}**", ""] if block.title else []
    return "\n".join([*title, f"{fence}text", *lines, fence])


def _trend(block: Trend) -> str:
    title = f"**{_escape(block.title)}** " if block.title else ""
    strokes = trend_strokes(block)
    line = f"`{strokes}` " if strokes else ""
    drawn = f"{title}{line}{_escape(trend_summary(block))}"
    return printable(" ".join(drawn.splitlines()))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _lane(lane: Lane) -> str:
    longest = sorted(lane.bars, key=lambda bar: -bar.duration_ns)[:_MOST_BARS]
    rows = tuple(
        (
            words("· " * bar.depth + bar.label),
            words(duration(bar.start_ns)),
            words(taken(bar.duration_ns)),
            words(bar.detail),
        )
        for bar in sorted(longest, key=lambda bar: (bar.start_ns, bar.depth))
    )
    table = _table(Table(("", "begins at", "takes", ""), rows, (1, 2)))
    left_out = len(lane.bars) - len(longest)
    rest = f"\n\nand {left_out} shorter ones" if left_out else ""
    return f"**{_escape(lane.title)}**\n\n{table}{rest}"


def _pane_title(pane: Pane) -> Words:
    return words(pane.title + (f" ({pane.note})" if pane.note else ""))


def _pane(pane: Pane) -> str:
    lines = shortened(pane.lines)
    text = "\n".join(line.text for line in lines[:_MOST_LINES])
    rest = len(lines) - _MOST_LINES
    fence = _fence(text)
    return f"{fence}python\n{text}\n{fence}" + (f"\n\nand {rest} more lines" if rest > 0 else "")


def _branches(branches: Iterable[Branch], depth: int) -> Iterable[str]:
    for branch in branches:
        note = f" {_words(branch.note)}" if branch.note else ""
        yield f"{'  ' * depth}- {_words(branch.words)}{note}"
        yield from _branches(branch.branches, depth + 1)


def _listing(block: Listing) -> str:
    text = "\n".join(block.lines)
    lines: list[str] = []
    for number, line in enumerate(block.lines, block.first_line):
        lines.append(line)
        part = marked_part(block, number, line)
        if part is not None:
            lines.append(" " * part[0] + "^" * (part[1] - part[0]))
    fence = _fence(text)
    return "\n".join([f"{fence}python", *lines, fence])


def _source(block: SourceFile) -> str:
    """The lines that lost something and some around them, with the gutter at their left."""
    lines = [
        f"{line.gutter}  {line.number} {line.stroke} {line.text}".rstrip()
        for line in text_lines(block)
    ]
    fence = _fence("\n".join(lines))
    drawn = "\n".join([f"{fence}text", *lines, fence])
    return f"{_heading(block.title, block.summary, '###')}\n\n{drawn}"


def _excerpt(block: Excerpt) -> str:
    lines = [block.text]
    if block.column is not None:
        stop = block.end_column if block.end_column is not None else len(block.text)
        lines.append(" " * block.column + "^" * max(stop - block.column, 1))
    fence = _fence(block.text)
    return "\n".join([f"{fence}python", *lines, fence])


def _fence(text: str) -> str:
    """Longer than any run of backticks in the user's lines, which then cannot close it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)


def _words(parts: Words) -> str:
    return "".join(_span(part) for part in parts).replace("\n", " ")


def _span(span: Span) -> str:
    if not span.text.strip():
        return span.text
    if is_outside(span.url):
        return f"[{_escape(span.text)}]({span.url})"
    if span.style == "code":
        return _code(span.text.strip("`"))
    if span.style in ("strong", "bad"):
        return f"**{_escape(span.text.strip())}**"
    return _escape(span.text)


def _code(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    # A bar would end the cell of a table even inside code.
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
