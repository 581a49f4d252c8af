"""Python code in colours, line by line, for pages. The colours stand in stylesheets.

It is read as `scripts/panes.js` reads it in the browser: comments, strings, numbers and words. To
read it as Python does would take longer than all else on a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from markupsafe import Markup

from compilescope.base.patterns import late
from compilescope.base.texts import visible
from compilescope.report.render.safe_html import escape

Token = tuple[str, str]
"""A class of the stylesheet, empty for none, and a piece of one line."""
_PIECE = late(
    r"(?P<comment>#.*)"
    r"""|(?P<prefix>[rbuft]{0,2})(?P<quote>\"{3}|'{3}|["'])"""
    r"|(?P<number>\.?\d(?:e[+-]\d|[\w.])*)"
    r"|(?P<word>@?[^\W\d]\w*)"
    r"""|[^\w"'#@.]+|.""",
    re.IGNORECASE,
)
_TO_END = {
    '"""': late(r'(?:[^\\]|\\.)*?"""'), "'''": late(r"(?:[^\\]|\\.)*?'''"),
    '"': late(r'(?:[^"\\]|\\.)*"'), "'": late(r"(?:[^'\\]|\\.)*'"),
}  # fmt: skip
_FIELD = late(r"(\{[^{}]+\})")
"""What a formatted string puts in."""
_KEYWORDS = """False None True and as assert async await break class continue def del elif else
except finally for from global if import in is lambda nonlocal not or pass raise return try while
with yield"""
_BUILTINS = """Ellipsis NotImplemented abs aiter all any bin bool breakpoint bytearray bytes
callable chr classmethod cls compile complex delattr dict dir divmod enumerate eval filter float
format frozenset getattr globals hasattr hash hex id input int isinstance issubclass iter len list
locals map max memoryview min next object oct open ord pow print property range repr reversed round
self set setattr slice sorted staticmethod str sum super tuple type vars zip"""
WORDS = {"k": _KEYWORDS.split(), "b": _BUILTINS.split()}
"""Words with a colour, by their class: for the script too."""
_STYLES = {word: style for style, words in WORDS.items() for word in words}
_LONGEST = 200_000
"""A text with more characters stays black: nobody waits for its colours. Chosen."""


def code_lines(source: str) -> list[Markup]:
    """Each line of a Python text as HTML."""
    return [line_html(tokens) for tokens in code_tokens(source)]


def code_tokens(source: str) -> list[list[Token]]:
    """Each line of a Python text as its tokens, all characters in their places."""
    text = visible(source)
    if len(text) > _LONGEST:
        return [[("", line)] for line in text.split("\n")]
    found: list[list[Token]] = []
    open_quote = ""
    for line in text.split("\n"):
        tokens: list[Token] = []
        open_quote = _read(line, open_quote, tokens)
        found.append(tokens)
    return found


def _read(line: str, open_quote: str, tokens: list[Token]) -> str:
    """Put the line's tokens into the list, and return the quotes of a string that goes on in the
    next line."""
    at = 0
    if open_quote:
        ended = _TO_END[open_quote].match(line)
        at = ended.end() if ended else len(line)
        tokens.append(("s", line[:at]))
        if ended is None:
            return open_quote
    before, defined = "", False
    while found := _PIECE.match(line, at):
        piece, kind, start, at = found[0], found.lastgroup, at, found.end()
        if quote := found["quote"]:
            ended = _TO_END[quote].match(line, at)
            at = ended.end() if ended else len(line)
            tokens += _string(line[start:at], is_formatted=found["prefix"].lower() in _FORMATTED)
            if ended is None:
                return quote if len(quote) > 1 else ""
        elif kind == "word":
            style = "f" if defined or piece[0] == "@" else _STYLES.get(piece, "")
            tokens.append(("" if style == "b" and before == "." else style, piece))
        else:
            tokens.append((_KINDS.get(kind or "", ""), piece))
        defined = piece in ("def", "class") or (defined and piece.isspace())
        before = piece
    return ""


_KINDS = {"comment": "c", "number": "n"}
_FORMATTED = ("f", "t", "rf", "fr", "rt", "tr")


def _string(text: str, *, is_formatted: bool) -> Iterator[Token]:
    """A string; what a formatted one puts in is code."""
    for number, part in enumerate(_FIELD.split(text) if is_formatted else [text]):
        if number % 2 == 0:
            yield "s", part
        else:
            inside: list[Token] = []
            _read(part[1:-1], "", inside)
            yield from (("s", "{"), *inside, ("s", "}"))


def line_html(tokens: Iterable[Token], start: int | None = None, stop: int | None = None) -> Markup:
    """The line; what stands from column `start` to `stop` is marked."""
    if start is None:
        return Markup("".join(_token(*token) for token in tokens))
    before, inside, after = [], [], []
    column = 0
    last = float("inf") if stop is None else stop
    for style, text in tokens:
        end = column + len(text)
        first_cut = int(min(max(start - column, 0), len(text)))
        second_cut = int(min(max(last - column, 0), len(text)))
        before.append(_token(style, text[:first_cut]))
        inside.append(_token(style, text[first_cut:second_cut]))
        after.append(_token(style, text[second_cut:]))
        column = end
    return Markup(f"{''.join(before)}<mark>{''.join(inside)}</mark>{''.join(after)}")


def _token(style: str, text: str) -> str:
    if not text:
        return ""
    return f'<b class="{style}">{escape(text)}</b>' if style else escape(text)
