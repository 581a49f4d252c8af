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
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String

from compilescope.report.render.diffs import diff_kind

# Control characters that HTML forbids, and marks that turn the direction of the text around them.
_ODD = {c: "\N{REPLACEMENT CHARACTER}" for c in (*range(9), 11, *range(14, 32), *range(127, 160))}
_ODD |= {c: f"\u27e8U+{c:04X}\u27e9" for c in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_ODD |= {c: "\N{REPLACEMENT CHARACTER}" for c in (0xFFFE, 0xFFFF)}
_PARTS = re.compile(
    r"(?P<code>`[^`\n]+`)"
    r"|(?P<gap><[^<>\n]{1,60}>)"
    r"|(?P<link>https://(?:docs\.|www\.)?(?:pytorch\.org|github\.com/pytorch)[^\s<>\"'`)\]]*)"
)
_STYLES = (
    (Comment, "c"), (String, "s"), (Number, "n"), (Operator.Word, "k"), (Keyword, "k"),
    (Name.Function, "f"), (Name.Class, "f"), (Name.Decorator, "f"), (Name.Builtin, "b"),
)  # fmt: skip
_LONGEST_CODE = 200_000


def printable(text: str) -> str:
    """Text that can do nothing but be read, before it is escaped."""
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_ODD).encode("utf-8", "replace").decode()


def finalize(value: Any) -> Any:
    """What templates print passes through here; what is marked as HTML already did."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return "" if value is None else value
    return printable(value)


def sentence(text: str) -> Markup:
    """A sentence of PyTorch's or ours: `code`, <gaps> and links to PyTorch's own pages."""
    out: list[str] = []
    done = 0
    text = printable(text)
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
    for number, line in enumerate(_coloured(source.rstrip("\n")), first):
        kind = ' class="here"' if number == marked else ""
        rows.append(f'<span{kind} data-line="{number}">{line or " "}</span>')
    return Markup(f'<pre class="code" tabindex="0"><code>{"".join(rows)}</code></pre>')


def diff_lines(diff: str) -> Markup:
    """A unified diff, without the names of its files."""
    rows = [
        f'<span class="{diff_kind(line)}">{escape(printable(line)) or " "}</span>'
        for line in diff.splitlines()
        if diff_kind(line) not in ("file", "place")
    ]
    return Markup(f'<pre class="diff" tabindex="0"><code>{"".join(rows)}</code></pre>')


def _coloured(source: str) -> list[str]:
    text = printable(source.expandtabs(4))
    if len(text) > _LONGEST_CODE:
        return [escape(line) for line in text.split("\n")]
    lines = [""]
    for kind, value in PythonLexer(stripnl=False, ensurenl=False).get_tokens(text):
        style = next((name for token, name in _STYLES if kind in token), "")
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append("")
            if part:
                safe = escape(part)
                lines[-1] += f'<b class="{style}">{safe}</b>' if style else safe
    return lines


def note_html(text: str) -> Markup:
    """A note in markdown. HTML in it is shown as text; its headings go below those of the page."""
    tokens = _markdown().parse(printable(text))
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
