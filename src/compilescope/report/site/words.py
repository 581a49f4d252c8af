"""Texts of others as HTML: PyTorch's sentences, people's notes, code. All of it escaped here.

Nothing passes as markup but what this file makes itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from compilescope.base.texts import visible
from compilescope.report.render.code_colors import code_lines
from compilescope.report.render.code_lines import diff_kind

_PARTS = re.compile(
    r"(?P<code>`[^`\n]+`)"
    r"|(?P<gap><[^<>\n]{1,60}>)"
    r"|(?P<link>https://(?:docs\.|www\.)?(?:pytorch\.org|github\.com/pytorch)[^\s<>\"'`)\]]*)"
)


def sentence(text: str) -> Markup:
    """A sentence of PyTorch's or ours: `code`, <gaps> and links to PyTorch's own pages."""
    out: list[str] = []
    done = 0
    text = visible(text)
    for found in _PARTS.finditer(text):
        out.append(escape(text[done : found.start()]))
        part = found[0]
        if found["code"]:
            out.append(f"<code>{escape(part.strip('`'))}</code>")
        elif found["gap"]:
            out.append(f"<var>{escape(part)}</var>")
        else:
            address = part.rstrip(".,;:")
            out.append(f'<a href="{escape(address)}" rel="noopener">{escape(address)}</a>')
            out.append(escape(part[len(address) :]))
        done = found.end()
    out.append(escape(text[done:]))
    return Markup("".join(out))


def python_lines(source: str, marked: int | None = None, first: int = 1) -> Markup:
    """Python, a line each, numbered; the marked line is the one that breaks."""
    rows = []
    for number, line in enumerate(code_lines(source.rstrip("\n").expandtabs(4)), first):
        kind = ' class="here"' if number == marked else ""
        rows.append(f'<span{kind} data-line="{number}">{line or " "}</span>')
    return Markup(f'<pre class="code" tabindex="0"><code>{"".join(rows)}</code></pre>')


def diff_lines(diff: str) -> Markup:
    """A unified diff, without the names of its files."""
    rows = [
        f'<span class="{diff_kind(line)}">{escape(visible(line)) or " "}</span>'
        for line in diff.splitlines()
        if diff_kind(line) not in ("file", "place")
    ]
    return Markup(f'<pre class="diff" tabindex="0"><code>{"".join(rows)}</code></pre>')


def note_html(text: str) -> Markup:
    """A note in markdown. HTML in it is shown as text; its headings go below those of the page."""
    tokens = _markdown().parse(visible(text))
    _lower_headings(tokens)
    return Markup(_markdown().renderer.render(tokens, _markdown().options, {}))


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    # Pictures would be requests to elsewhere, which the pages forbid.
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable("table")
    parser.disable(["image", "html_block", "html_inline"])
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("code_block", _fence)
    return parser


def _fence(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    language = token.info.strip().split(" ")[0].lower()
    if language in ("python", "py", "python3"):
        return str(python_lines(token.content))
    return f'<pre tabindex="0"><code>{escape(token.content)}</code></pre>\n'


def _lower_headings(tokens: Iterable[Token]) -> None:
    """The first heading of a note is an h3, whatever its author began with."""
    headings = [t for t in tokens if t.type in ("heading_open", "heading_close")]
    levels = sorted({int(token.tag[1]) for token in headings})
    for token in headings:
        token.tag = f"h{min(3 + levels.index(int(token.tag[1])), 6)}"
