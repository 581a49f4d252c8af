"""Blocks as an HTML fragment: what a notebook shows. Everything of the user's is escaped."""

from __future__ import annotations

from html import escape

from compilescope.report.blocks import (
    Block,
    Document,
    Excerpt,
    Facts,
    Heading,
    Item,
    Listing,
    Paragraph,
    Span,
    Words,
)

# Colours come from the page (currentColor, opacity), so that light and dark notebooks both work.
_CSS = """
.cscope{font:14px/1.5 system-ui,sans-serif;max-width:52rem}
.cscope h3{margin:0;font-size:1.1em}.cscope h4{margin:1.2em 0 .3em;font-size:1em;border-bottom:1px solid;border-color:rgba(128,128,128,.4)}
.cscope p{margin:.15em 0}.cscope .d1{margin-left:2.2em}
.cscope .dim{opacity:.65}.cscope .strong{font-weight:600}.cscope .good{color:#1a7f37;font-weight:600}
.cscope .warn{color:#9a6700}.cscope .bad{color:#cf222e;font-weight:600}
.cscope .item{display:flex;gap:.7em;margin-top:.8em}.cscope .item span:last-child{margin-left:auto}
.cscope pre{margin:.2em 0 .2em 2.2em;padding:.4em .7em;background:rgba(128,128,128,.12);border-radius:4px;overflow-x:auto}
.cscope pre b{font-weight:inherit;text-decoration:underline wavy #cf222e;text-underline-offset:3px}
.cscope td{padding:0 1.2em 0 0;text-align:left}.cscope code{font-family:ui-monospace,monospace;font-size:.93em}
.cscope p code{background:rgba(128,128,128,.12);border-radius:3px;padding:0 .25em}.cscope table{font-size:inherit}
@media(prefers-color-scheme:dark){.cscope .good{color:#3fb950}.cscope .warn{color:#d29922}.cscope .bad{color:#ff7b72}}
"""


def to_html(document: Document) -> str:
    head = f"<h3>{escape(document.title)}</h3>"
    if document.subtitle:
        head += f'<p class="dim"><code>{escape(document.subtitle)}</code></p>'
    body = "".join(_block(block) for block in document.blocks)
    return f'<div class="cscope"><style>{_CSS}</style>{head}{body}</div>'


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        note = f' <span class="dim">{escape(block.note)}</span>' if block.note else ""
        return f"<h4>{escape(block.text)}{note}</h4>"
    if isinstance(block, Paragraph):
        hanging = f'<span class="strong">{escape(block.hanging)}</span> ' if block.hanging else ""
        depth = ' class="d1"' if block.depth else ""
        return f"<p{depth}>{hanging}{_words(block.words)}</p>"
    if isinstance(block, Facts):
        rows = "".join(
            f'<tr><td class="dim">{escape(label)}</td><td>{_words(value)}</td></tr>'
            for label, value in block.rows
        )
        return f"<table>{rows}</table>"
    if isinstance(block, Item):
        return (
            f'<div class="item"><span class="dim">{escape(block.number)}</span>'
            f"<span>{_words(block.left)}</span><span>{_words(block.right)}</span></div>"
        )
    if isinstance(block, Listing):
        return _listing(block)
    return _excerpt(block)


def _listing(block: Listing) -> str:
    rows = []
    for number, line in enumerate(block.lines, block.first_line):
        text = escape(line)
        if number == block.marked_line and block.column is not None:
            stop = block.end_column if block.end_column is not None else len(line)
            marked = f"<b>{escape(line[block.column : stop])}</b>"
            text = escape(line[: block.column]) + marked + escape(line[stop:])
        rows.append(f'<span class="dim">{number:>4} </span>{text}')
    return "<pre><code>" + "\n".join(rows) + "</code></pre>"


def _excerpt(block: Excerpt) -> str:
    if block.column is None:
        return f"<pre><code>{escape(block.text.strip())}</code></pre>"
    stop = block.end_column if block.end_column is not None else len(block.text)
    before = block.text[: block.column].lstrip()
    marked, after = block.text[block.column : stop], block.text[stop:]
    return f"<pre><code>{escape(before)}<b>{escape(marked)}</b>{escape(after)}</code></pre>"


def _words(parts: Words) -> str:
    return "".join(_span(part) for part in parts)


def _span(part: Span) -> str:
    if part.style == "code":
        return f"<code>{escape(part.text.strip('`'))}</code>"
    text = escape(part.text)
    return text if part.style == "plain" else f'<span class="{part.style}">{text}</span>'
