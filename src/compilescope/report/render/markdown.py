"""Blocks as GitHub-flavoured markdown: for issues, pull requests and job summaries."""

from __future__ import annotations

from collections.abc import Iterable

from compilescope.base.texts import as_prose, begun, code_span, fenced
from compilescope.report.blocks import (
    Block,
    Branch,
    Curve,
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
    Lane,
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
    Table,
    Timeline,
    Trend,
    Words,
    words,
)
from compilescope.report.render.charts import (
    curve_strokes,
    curve_summary,
    roofline_summary,
    trend_strokes,
    trend_summary,
)
from compilescope.report.render.code_lines import excerpt_part, marked_part, shortened
from compilescope.report.render.grids import fitted_table, shaded
from compilescope.report.render.measures import MEASURE_CELLS, measure_rows
from compilescope.report.render.portions import portion_shares
from compilescope.report.render.safe_html import is_outside
from compilescope.report.render.source_file import text_lines
from compilescope.report.render.spans import duration, taken
from compilescope.report.render.visible_blocks import cleaned_document

# Chosen: bars of a lane and lines of a stage; a comment or an issue stays readable.
_MOST_BARS = 40
_MOST_LINES = 200
_MATRIX_WIDTH = 120


def to_markdown(document: Document) -> str:
    document = cleaned_document(document)
    parts = [f"# {as_prose(document.title)}"]
    if document.subtitle:
        parts.append(code_span(document.subtitle))
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
    if isinstance(block, Paragraph) and block.unwrapped:
        # A command, there to be copied: no table around it whose cells a bar would end.
        return _words(block.words).replace("\\|", "|")
    if isinstance(block, Paragraph):
        hanging = f"**{as_prose(block.hanging)}** " if block.hanging not in ("", "-") else ""
        return ("- " if block.hanging == "-" else hanging) + begun(_words(block.words))
    if isinstance(block, Facts):
        rows = [f"| {as_prose(label)} | {_words(value)} |" for label, value in block.rows]
        return "\n".join(["| | |", "|---|---|", *rows])
    if isinstance(block, Figures):
        return _figures(block)
    if isinstance(block, Portions):
        return _portions(block)
    if isinstance(block, Measures):
        return _measures(block)
    if isinstance(block, Trend):
        return _trend(block)
    if isinstance(block, Curves):
        return "\n".join([f"**{as_prose(block.title)}**", "", *map(_curve, block.curves)])
    if isinstance(block, Roofline):
        return f"**{as_prose(block.title)}** {as_prose(roofline_summary(block))}"
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Matrix):
        return "\n\n".join(map(_block, fitted_table(block, _MATRIX_WIDTH)))
    if isinstance(block, Item):
        right = f" · {_words(block.right)}" if block.right else ""
        title = f"### {as_prose(block.number)}. {_words(block.left)}{right}"
        return "\n\n".join([title, *map(_block, block.blocks)])
    if isinstance(block, Fold):
        return _fold(block.summary, map(_block, block.blocks))
    if isinstance(block, Timeline):
        return "\n\n".join(_lane(lane) for lane in block.lanes)
    if isinstance(block, Heatmap):
        return fenced("\n".join(shaded(block)), "text")
    if isinstance(block, Panes):
        return "\n\n".join(_fold(_pane_title(pane), [_pane(pane)]) for pane in block.panes)
    if isinstance(block, Listing):
        return _listing(block)
    if isinstance(block, SourceFile):
        return _source(block)
    if isinstance(block, Excerpt):
        return _excerpt(block)
    if isinstance(block, Quote):
        said = (begun(as_prose(line)) for line in block.text.splitlines())
        lines = [f"**{as_prose(block.speaker)}:**", "", *said]
        return "\n".join(f"> {line}".rstrip() for line in lines)
    if isinstance(block, Diff):
        return fenced(block.text.rstrip(), "diff")
    return "\n".join(_branches(block.branches, 0))


def _heading(text: str, note: str, marks: str) -> str:
    return f"{marks} {as_prose(text)}" + (f" — {as_prose(note)}" if note else "")


def _fold(summary: Words, inside: Iterable[str]) -> str:
    # Inside <summary> GitHub reads HTML, where a backslash escapes nothing.
    label = "".join(part.text for part in summary)
    for mark, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        label = label.replace(mark, name)
    label = " ".join(label.split())
    return "\n\n".join([f"<details><summary>{label}</summary>", *inside, "</details>"])


def _table(block: Table) -> str:
    rule = ["---:" if number in block.numeric else "---" for number in range(len(block.columns))]
    lines = [_row(map(as_prose, block.columns)), _row(rule)]
    return "\n".join(lines + [_row(map(_words, row)) for row in block.rows])


def _figures(block: Figures) -> str:
    """Labels above, the numbers below."""
    rule = ["---:"] * len(block.figures)
    values = [f"**{as_prose(figure.value)}**" for figure in block.figures]
    lines = [_row(as_prose(figure.label) for figure in block.figures), _row(rule), _row(values)]
    if any(figure.note for figure in block.figures):
        lines.append(_row(as_prose(figure.note) for figure in block.figures))
    return "\n".join(lines)


def _portions(block: Portions) -> str:
    told = (
        f"{as_prose(portion.label)} **{as_prose(portion.text)}** ({100 * share:.0f} %)"
        for portion, share in portion_shares(block)
    )
    return f"{as_prose(block.title)}: **{as_prose(block.text)}** = {' + '.join(told)}"


def _measures(block: Measures) -> str:
    lines = [f"{label} {bar:<{MEASURE_CELLS}} {text}" for label, bar, text in measure_rows(block)]
    title = [f"**{as_prose(block.title)}**", ""] if block.title else []
    return "\n".join([*title, fenced("\n".join(lines), "text")])


def _trend(block: Trend) -> str:
    title = f"**{as_prose(block.title)}** " if block.title else ""
    strokes = trend_strokes(block)
    line = f"`{strokes}` " if strokes else ""
    return f"{title}{line}{as_prose(trend_summary(block))}"


def _curve(curve: Curve) -> str:
    strokes = curve_strokes(curve)
    line = f"`{strokes}` " if strokes else ""
    return f"- {as_prose(curve.label)}: {line}{as_prose(curve_summary(curve))}"


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
    return f"**{as_prose(lane.title)}**\n\n{table}{rest}"


def _pane_title(pane: Pane) -> Words:
    return words(pane.title + (f" ({pane.note})" if pane.note else ""))


def _pane(pane: Pane) -> str:
    lines = shortened(pane.lines)
    text = "\n".join(line.text for line in lines[:_MOST_LINES])
    rest = len(lines) - _MOST_LINES
    return fenced(text, "python") + (f"\n\nand {rest} more lines" if rest > 0 else "")


def _branches(branches: Iterable[Branch], depth: int) -> Iterable[str]:
    for branch in branches:
        note = f" {_words(branch.note)}" if branch.note else ""
        yield f"{'  ' * depth}- {_words(branch.words)}{note}"
        yield from _branches(branch.branches, depth + 1)


def _listing(block: Listing) -> str:
    lines: list[str] = []
    for number, line in enumerate(block.lines, block.first_line):
        lines.append(line)
        part = marked_part(block, number, line)
        if part is not None:
            lines.append(" " * part[0] + "^" * (part[1] - part[0]))
    return fenced("\n".join(lines), "python")


def _source(block: SourceFile) -> str:
    """The lines that lost something and some around them, with the gutter at their left."""
    lines = [
        f"{line.gutter}  {line.number} {line.stroke} {line.text}".rstrip()
        for line in text_lines(block)
    ]
    drawn = fenced("\n".join(lines), "text")
    return f"{_heading(block.title, block.summary, '###')}\n\n{drawn}"


def _excerpt(block: Excerpt) -> str:
    lines = [block.text]
    part = excerpt_part(block)
    if part is not None:
        lines.append(" " * part[0] + "^" * (part[1] - part[0]))
    return fenced("\n".join(lines), "python")


def _words(parts: Words) -> str:
    return "".join(_span(part) for part in parts).replace("\n", " ")


def _span(span: Span) -> str:
    if not span.text.strip():
        return span.text
    if is_outside(span.url):
        return f"[{as_prose(span.text)}]({_address(span.url)})"
    if span.style == "code":
        return code_span(span.text.strip("`"))
    if span.style in ("strong", "bad"):
        text = span.text.strip()
        before, after = span.text.split(text, 1)
        return f"{before}**{as_prose(text)}**{after}"
    return as_prose(span.text)


def _address(url: str) -> str:
    """What would end the address early is percent-encoded."""
    return url.replace("(", "%28").replace(")", "%29").replace("|", "%7C")
