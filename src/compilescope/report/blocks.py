"""What a report is made of: styled words, blocks of them, and documents of blocks.

Every format draws the same blocks, so no format lags behind. A stretch of words says what it means
(code, good, bad), never a colour. A new block needs its drawing in `report/render`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.analysis.gate.doubts import Doubt
from compilescope.knowledge.findings.finding import Finding

Style = Literal["plain", "strong", "dim", "code", "good", "warn", "bad"]
"""What a stretch of text means."""


class Span(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stretch of text and what it means."""

    text: str
    style: Style = "plain"
    target: str = ""
    """The anchor of an item elsewhere in the document that this text speaks of."""
    url: str = ""
    """A page outside the document that this text leads to: http, https or file. One that begins
    with a single `/` is a page of the dashboard: a link on its pages, plain text elsewhere."""


Words = tuple[Span, ...]
_CODE = late(r"(`[^`\n]+`)")


def words(*parts: str | Span) -> Words:
    """Text and spans, side by side."""
    return tuple(part if isinstance(part, Span) else Span(part) for part in parts)


def prose(text: str, style: Style = "plain") -> Words:
    """A sentence; what stands between backticks is code."""
    parts = _CODE.split(text)
    return tuple(
        Span(part, "code" if number % 2 else style) for number, part in enumerate(parts) if part
    )


def plain(parts: Words) -> str:
    """The text alone."""
    return "".join(part.text for part in parts)


class _Block(msgspec.Struct, frozen=True, tag_field="block", tag=str.lower, omit_defaults=True):
    pass


class Heading(_Block, frozen=True):
    """A title within a part."""

    text: str
    note: str = ""


class Paragraph(_Block, frozen=True):
    """A sentence or more."""

    words: Words
    hanging: str = ""
    """A word that stands before the first line, the rest is set in under it."""
    unwrapped: bool = False
    """In one line however long it is: a command, there to be copied."""


class Facts(_Block, frozen=True):
    """Labels and values, one below the other."""

    rows: tuple[tuple[str, Words], ...]


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One number that a reader looks at first."""

    value: str
    label: str
    note: str = ""
    style: Style = "plain"
    target: str = ""
    """The anchor of the section or item that it counts."""


class Figures(_Block, frozen=True):
    """The few numbers that say it all."""

    figures: tuple[Figure, ...]


class Portion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a whole."""

    label: str
    amount: float
    text: str
    """The amount, for people."""
    kind: str = ""
    """What it is, in one word: colours go by it."""
    target: str = ""
    group: str = ""
    """What it and its neighbours are together."""


class Portions(_Block, frozen=True):
    """What a whole is made of, as one bar."""

    title: str
    text: str
    """The whole, for people."""
    portions: tuple[Portion, ...]


class Measures(_Block, frozen=True):
    """Numbers of one kind, each as a bar on the same scale, which begins at 0."""

    title: str
    rows: tuple[tuple[str, float, str], ...]
    """Label, amount, and the amount for people."""
    intervals: tuple[tuple[float, float] | None, ...] = ()
    """Low and high of each row, drawn as a whisker; empty, or None in a row: no interval."""
    idle_from: int | None = None
    """The first row of time in which nothing is done, down to the last: on a page in another
    colour."""


class TrendPoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value at a moment."""

    label: str
    """The moment, for people."""
    value: float
    text: str
    """The value, for people."""
    low: float | None = None
    high: float | None = None
    url: str = ""
    """The page that it comes from, as in a `Span`."""


class Trend(_Block, frozen=True):
    """How a number went over time."""

    title: str
    points: tuple[TrendPoint, ...]
    """The oldest first."""
    compact: bool = False
    """A small line beside other words: it leads nowhere, and its ends have no labels."""


class Curve(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of several lines."""

    label: str
    points: tuple[TrendPoint, ...]
    """The earliest first."""
    at: tuple[float, ...]
    """Where each stands: from 0 on, in the same unit for all curves."""
    number: int = 0
    """Its color goes by it: what is drawn several times has the same in each drawing."""
    url: str = ""
    """As in a `Span`."""


class Curves(_Block, frozen=True):
    """How a number went, several times over: each from its own start."""

    title: str
    curves: tuple[Curve, ...]


class RooflineDot(msgspec.Struct, frozen=True, omit_defaults=True):
    """What computes something, by how much of it a byte and a second."""

    label: str
    text: str
    """Its numbers, for people."""
    flops_per_byte: float
    flops_per_second: float
    share: float
    """Of the time."""


class Roofline(_Block, frozen=True):
    """What a machine can do at most, and how near to that it is used; both axes are logarithmic."""

    title: str
    bytes_per_second: float
    ceilings: tuple[tuple[str, float], ...]
    """Name and operations a second; one at least."""
    dots: tuple[RooflineDot, ...]
    """The largest share first."""


class Table(_Block, frozen=True):
    """Rows under named columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Words, ...], ...]
    numeric: tuple[int, ...] = ()
    """Columns whose values stand at the right."""
    one_line: int | None = None
    """The column that is cut on a terminal so that every row keeps to one line."""


class Matrix(_Block, frozen=True):
    """Counts of things by kinds: models by causes. Columns and rows come with the most first."""

    corner: str
    """What a row is."""
    columns: tuple[tuple[str, str], ...]
    """A short name, and what it stands for."""
    rows: tuple[tuple[str, tuple[int, ...]], ...]
    row_urls: tuple[str, ...] = ()
    """Where each row's name leads, as in a `Span`; empty: nowhere."""
    column_urls: tuple[str, ...] = ()
    cell_queries: tuple[str, ...] = ()
    """What a column adds to the address of a row: together they lead to what a cell counts."""


class Excerpt(_Block, frozen=True):
    """A line of the user's source with the offending expression marked."""

    text: str
    column: int | None = None
    end_column: int | None = None


class Listing(_Block, frozen=True):
    """Some lines of a file; in one of them an expression is marked."""

    first_line: int
    lines: tuple[str, ...]
    marked_line: int
    column: int | None = None
    end_column: int | None = None
    """On `end_line`."""
    end_line: int | None = None
    """The line that the expression ends on, where that is a later one."""


class MarkedLines(msgspec.Struct, frozen=True):
    """Lines of a file that follow one another."""

    first_line: int
    lines: tuple[str, ...]


class GutterCell(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a line lost of one kind."""

    column: str
    """The heading that it stands under."""
    text: str
    note: str = ""
    """The whole of it, in words."""
    target: str = ""
    """The anchor of the item that explains it."""
    heat: float = 0.0
    """From 0 to 1: how much of the most that any line lost of this kind."""


class MarkedLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line that lost something, or that an item speaks of."""

    line: int
    cells: tuple[GutterCell, ...] = ()
    column: int | None = None
    end_column: int | None = None
    """On `end_line`."""
    end_line: int | None = None


class Stripe(msgspec.Struct, frozen=True):
    """Lines that ran in the same way: `graph`, `eager` or `both`."""

    first: int
    last: int
    kind: str


class SourceFile(_Block, frozen=True):
    """A file of the user's, with a gutter of what each line lost."""

    title: str
    number: int
    """Its place among the files: the anchor of line 8 is `line-<number>-8`."""
    summary: str
    """All that it lost, in words."""
    columns: tuple[str, ...]
    """Of the gutter, those that have a cell."""
    stretches: tuple[MarkedLines, ...]
    """What is shown of it: one where it is whole."""
    marked: tuple[MarkedLine, ...]
    stripes: tuple[Stripe, ...] = ()
    note: str = ""
    """What is left out."""
    unfolded: bool = False
    links: dict[str, int] = {}
    """Anchors of items elsewhere, and the line that each is about."""


class Diff(_Block, frozen=True):
    """A change to files, as a unified diff. Its lines are never wrapped."""

    text: str
    whole: str = ""
    """The command that shows it, where its end may be left out for lack of room."""


class CodeLine(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A line of code and what it is akin to."""

    text: str
    kin: tuple[int, ...] = ()
    """Numbers that it shares with the lines of other panes that it came from or became."""
    number: int | None = None
    """Its number in the file it was taken from."""
    fold: str = ""
    """Neighbours with the same word here are shown as one line until asked for: `inputs`."""


class Pane(msgspec.Struct, frozen=True, omit_defaults=True):
    """One stage of a graph: its code."""

    title: str
    lines: tuple[CodeLine, ...]
    note: str = ""


class Panes(_Block, frozen=True):
    """The same computation at several stages, two side by side: kin lines light up together."""

    panes: tuple[Pane, ...]
    beside: bool = False
    """Side by side on a terminal too, if it is wide enough; the numbers of `kin` are shown."""


class Bar(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that took time."""

    label: str
    start_ns: int
    """Since the timeline's beginning."""
    duration_ns: int
    depth: int = 0
    """How many bars of its lane it lies in."""
    kind: str = ""
    """What it is, in one word: colours go by it."""
    detail: str = ""
    target: str = ""
    """The anchor of the item that it comes from: a cause, or the graph that it made."""


class Lane(msgspec.Struct, frozen=True, omit_defaults=True):
    """The bars of one thread."""

    title: str
    bars: tuple[Bar, ...]


class Timeline(_Block, frozen=True):
    """What ran when."""

    duration_ns: int
    lanes: tuple[Lane, ...]


class Heatmap(_Block, frozen=True):
    """A grid of levels: where something is large."""

    lines: tuple[str, ...]
    """A digit a cell: 0 nothing, 1 to 8 from `low` to `high`, 9 beyond all."""
    low: str
    high: str
    beyond: str
    """What 9 means."""


class Branch(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node of a tree with all that is below it."""

    words: Words
    note: Words = ()
    branches: tuple[Branch, ...] = ()


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node of a tree whose time is known."""

    label: str
    duration_ns: int
    """With all that is below it."""
    kind: str = ""
    """What it is, in one word: colours go by it."""
    detail: str = ""
    target: str = ""
    """The anchor of the item that it comes from: a cause, or the graph that it made."""
    cells: tuple[Cell, ...] = ()


class Tree(_Block, frozen=True):
    """What came out of what."""

    branches: tuple[Branch, ...]
    cells: tuple[Cell, ...] = ()
    """The same by time, where it is known: a page draws it as an icicle."""
    cells_left_out: int = 0
    """The shortest, for which there was no room."""


class Fold(_Block, frozen=True):
    """Something that only some readers want: shut until it is asked for."""

    summary: Words
    blocks: tuple[Block, ...]


class Quote(_Block, frozen=True):
    """Words of somebody else's, under the name of who says them: never mixed with our own."""

    speaker: str
    text: str


class Item(_Block, frozen=True):
    """A numbered entry: its place at the left, its name at the right, then what it says."""

    number: str
    left: Words
    right: Words = ()
    blocks: tuple[Block, ...] = ()
    anchor: str = ""
    """What links to it name."""
    tags: tuple[str, ...] = ()
    """What a reader may filter by."""
    also: tuple[str, ...] = ()
    """Anchors of what it speaks of beside: links to them lead here."""


Block = (
    Heading
    | Paragraph
    | Facts
    | Figures
    | Portions
    | Measures
    | Trend
    | Curves
    | Roofline
    | Table
    | Matrix
    | Excerpt
    | Listing
    | SourceFile
    | Diff
    | Panes
    | Timeline
    | Heatmap
    | Tree
    | Fold
    | Quote
    | Item
)


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """A section as it was drawn."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    note: str = ""


class ShownRun(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The run that a document is about."""

    run: str = ""
    command: tuple[str, ...] = ()
    cwd: str = ""
    torch: str | None = None
    exit_status: int | None = None
    signal: int | None = None
    ended: str = ""
    """How the program ended, in a sentence; empty where nobody watched it to its end."""
    ended_style: Style = "plain"
    devices: tuple[str, ...] = ()
    """What its tensors lived on, and the name of the accelerator where that is known."""
    doubts: tuple[Doubt, ...] = ()
    """Why less may have been seen than there was."""


class Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """A report."""

    title: str
    subtitle: str
    parts: tuple[Part, ...]
    findings: tuple[Finding, ...] = ()
    """What was found, for formats that carry findings and not words."""
    root: str = ""
    """The folder that the findings' files are named relative to."""
    record: ShownRun = ShownRun()
    site: str = ""
    """Where the registry is published, with a slash at its end; empty where nobody said."""
    accepted: tuple[str, ...] | None = None
    """Fingerprints that a baseline accepts; None where the run was held against none."""


def note(text: str) -> Paragraph:
    """A remark in a lower voice; what stands between backticks is code."""
    spans = (
        Span(part.text, "dim" if part.style == "plain" else part.style) for part in prose(text)
    )
    return Paragraph(tuple(spans) or words(""))
