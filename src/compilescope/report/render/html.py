"""Blocks as HTML. Everything of the user's is escaped, in one place.

`to_html` makes the fragment that a notebook shows; `render.page` makes a page of the same blocks.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from html import escape
from pathlib import Path

from compilescope.report.blocks import (
    Block,
    Branch,
    Diff,
    Document,
    Excerpt,
    Facts,
    Fold,
    Heading,
    Heatmap,
    Item,
    Listing,
    Panes,
    Paragraph,
    Span,
    Table,
    Timeline,
    Words,
)
from compilescope.report.render.diffs import diff_kind
from compilescope.report.render.heatmap import draw_heatmap
from compilescope.report.render.marking import marked_part
from compilescope.report.render.panes import draw_panes
from compilescope.report.render.timeline import draw_timeline

# Control characters that HTML forbids even as references; a browser would show nothing or worse.
_FORBIDDEN = {c: "\N{REPLACEMENT CHARACTER}" for c in (*range(9), 11, *range(14, 32), 127)}
# Marks that turn the direction of the text around them, and so what a reader believes to read.
_TURNING = {c: f"\u27e8U+{c:04X}\u27e9" for c in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_SCHEMES = ("https://", "http://", "file:///")
_ODD = {**_FORBIDDEN, **_TURNING}


def clean(text: str) -> str:
    """Text that can do nothing but be read."""
    if not text.isascii() or not text.isprintable():
        text = text.translate(_ODD).encode("utf-8", "replace").decode()
    return escape(text)


@functools.cache
def style_of(name: str) -> str:
    """A stylesheet or script that lies beside this file."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def to_html(document: Document) -> str:
    head = f"<h3>{clean(document.title)}</h3>"
    if document.subtitle:
        head += f'<p class="dim"><code>{clean(document.subtitle)}</code></p>'
    body = ""
    for part in document.parts:
        body += (heading(part.title, part.note, "h4") if part.title else "") + draw(part.blocks)
    return f'<div class="cscope"><style>{style_of("blocks.css")}</style>{head}{body}</div>'


def heading(text: str, note: str, tag: str) -> str:
    remark = f' <span class="dim note">{clean(note)}</span>' if note else ""
    return f"<{tag}>{clean(text)}{remark}</{tag}>"


def draw(blocks: Iterable[Block], prefix: str = "") -> str:
    """`prefix` keeps the anchors of several documents on one page apart."""
    return "".join(_block(block, prefix) for block in blocks)


def _block(block: Block, prefix: str) -> str:
    if isinstance(block, Paragraph):
        hanging = f"<b>{clean(block.hanging)}</b> " if block.hanging not in ("", "-") else ""
        kind = ' class="point"' if block.hanging == "-" else ""
        return f"<p{kind}>{hanging}{_words(block.words, prefix)}</p>"
    if isinstance(block, Item):
        return _item(block, prefix)
    if isinstance(block, Listing):
        return _listing(block)
    if isinstance(block, Excerpt):
        return _excerpt(block)
    if isinstance(block, Diff):
        return _diff(block)
    if isinstance(block, Fold):
        inside = draw(block.blocks, prefix)
        return f"<details><summary>{_words(block.summary, prefix)}</summary>{inside}</details>"
    if isinstance(block, Facts):
        rows = "".join(
            f"<div><dt>{clean(label)}</dt><dd>{_words(value, prefix)}</dd></div>"
            for label, value in block.rows
        )
        return f"<dl>{rows}</dl>"
    if isinstance(block, Table):
        return _table(block, prefix)
    if isinstance(block, Heading):
        return heading(block.text, block.note, "h5")
    if isinstance(block, Timeline):
        return draw_timeline(block, clean)
    if isinstance(block, Heatmap):
        return draw_heatmap(block, clean)
    if isinstance(block, Panes):
        return draw_panes(block, clean)
    return f'<ul class="tree">{_branches(block.branches, prefix)}</ul>'


def _item(block: Item, prefix: str) -> str:
    anchor = f' id="{prefix}{clean(block.anchor)}"' if block.anchor else ""
    tags = f' data-tags="{clean(" ".join(block.tags))}"' if block.tags else ""
    return (
        f'<article class="item"{anchor}{tags}><header><span class="number">{clean(block.number)}'
        f'</span><span class="left">{_words(block.left, prefix)}</span>'
        f'<span class="right">{_words(block.right, prefix)}</span></header>'
        f'<div class="body">{draw(block.blocks, prefix)}</div></article>'
    )


def _table(block: Table, prefix: str) -> str:
    def cells(tag: str, values: Iterable[str]) -> str:
        right = block.numeric
        return "".join(
            f"<{tag}{' class=num' if number in right else ''}>{value}</{tag}>"
            for number, value in enumerate(values)
        )

    head = cells('th scope="col"', map(clean, block.columns)).replace('</th scope="col">', "</th>")
    rows = "".join(
        f"<tr>{cells('td', (_words(cell, prefix) for cell in row))}</tr>" for row in block.rows
    )
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="wide" tabindex="0"><table>{body}</table></div>'


def _branches(branches: Iterable[Branch], prefix: str) -> str:
    drawn = ""
    for branch in branches:
        remark = f' <span class="note">{_words(branch.note, prefix)}</span>' if branch.note else ""
        label = _words(branch.words, prefix) + remark
        if branch.branches:
            inside = f"<ul>{_branches(branch.branches, prefix)}</ul>"
            label = f"<details open><summary>{label}</summary>{inside}</details>"
        drawn += f"<li>{label}</li>"
    return drawn


def _diff(block: Diff) -> str:
    lines = "".join(
        f'<span class="{diff_kind(line)}">{clean(line)}\n</span>'
        for line in block.text.splitlines()
    )
    return f'<pre class="diff">{lines}</pre>'


def _listing(block: Listing) -> str:
    rows = []
    for number, line in enumerate(block.lines, block.first_line):
        here = number == block.marked_line
        part = marked_part(block, number, line)
        text = _marked(line, *part) if part is not None else clean(line)
        kind = ' class="here"' if here else ""
        rows.append(f"<span{kind}><i>{number}</i>{text or ' '}</span>")
    return f'<pre class="lines" tabindex="0"><code>{"".join(rows)}</code></pre>'


def _excerpt(block: Excerpt) -> str:
    lead = len(block.text) - len(block.text.lstrip())
    if block.column is None:
        return f"<pre><code>{clean(block.text.strip())}</code></pre>"
    start = max(block.column - lead, 0)
    stop = None if block.end_column is None else max(block.end_column - lead, 0)
    return f"<pre><code>{_marked(block.text.strip(), start, stop)}</code></pre>"


def _marked(line: str, column: int | None, end_column: int | None) -> str:
    if column is None:
        return clean(line)
    stop = end_column if end_column is not None else len(line)
    marked = f"<mark>{clean(line[column:stop])}</mark>"
    return clean(line[:column]) + marked + clean(line[stop:])


def _words(parts: Words, prefix: str) -> str:
    return "".join(_span(part, prefix) for part in parts)


def _span(part: Span, prefix: str) -> str:
    if part.style == "code":
        text = f"<code>{clean(part.text.strip('`'))}</code>"
    elif part.style == "plain":
        text = clean(part.text)
    else:
        text = f'<span class="{part.style}">{clean(part.text)}</span>'
    if part.url.startswith(_SCHEMES):
        return f'<a href="{clean(part.url)}" rel="noopener">{text}</a>'
    return f'<a href="#{prefix}{clean(part.target)}">{text}</a>' if part.target else text
