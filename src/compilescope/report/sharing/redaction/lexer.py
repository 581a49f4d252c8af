"""Splits Python, or what looks like it, into tokens. Never raises, whatever the text.

Not Python's own tokenizer: that one differs between versions, wants whole files, and takes an
f-string for one token or for many. Here its fragments and its expressions always come apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["name", "number", "fragment", "comment", "quote", "space", "other"]


class Token(NamedTuple):
    """A stretch of the text. Tokens follow one another without gaps."""

    kind: Kind
    start: int
    end: int
    quote: str = ""
    """Of a fragment: the quotes around its string; a format's specification has none."""
    whole: bool = False
    """Of a fragment: it is all that its string holds."""


NUMBER = re.compile(
    r"0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+"
    r"|(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?(?:[jJfF]|[uU]?[lL]{0,2})(?!\w)"
    r"|\d[\d_]*"
)
_TOKEN = re.compile(
    r"(?P<string>(?i:(?P<prefix>[rbuft]{0,2}))(?P<quote>'''|\"\"\"|'|\"))"
    # What is not ASCII stands in names, outside of strings; a cut value ends in a mark of ours.
    r"|(?P<name>(?:[^\W\d]|[^\x00-\x7f…])(?:\w|[^\x00-\x7f…])*)"
    rf"|(?P<number>{NUMBER.pattern})"
    r"|(?P<comment>#[^\n]*)"
    r"|(?P<space>[^\S\n]+|\n)"
    r"|(?P<other>[^\w\s'\"#.()\[\]{}]+|.)",
    re.S,
)

_CHARACTER = re.compile(r"\\N\{[A-Z0-9 -]+\}")
_DEEPEST = 4
"""f-strings, and formats of their values, within one another. Chosen: people nest two, and each
reads all that is in it again; what lies deeper is one fragment, redacted whole."""
_PLAIN_BODY = {
    quote: re.compile(
        rf"[^{quote[0]}\\\n]*(?:\\.[^{quote[0]}\\\n]*)*"
        if len(quote) == 1
        else rf"[^{quote[0]}\\]*(?:(?:\\.|{quote[0]}(?!{quote[0]}{quote[0]}))[^{quote[0]}\\]*)*",
        re.S,
    )
    for quote in ("'", '"', "'''", '"""')
}


_new = tuple.__new__
"""A token without the call of its class: a file has very many."""


def tokens(text: str, start: int = 0, end: int | None = None, *, depth: int = 0) -> Iterator[Token]:
    """The tokens of `text`, or of a part of it, `depth` f-strings deep."""
    at, end = start, len(text) if end is None else end
    while at < end:
        match = _TOKEN.match(text, at, end)
        assert match is not None
        kind = match.lastgroup
        if kind == "string":
            stop, at = _closing(text, match, end)
            yield from _string(text, match, stop, at, depth)
        else:
            start, at = match.span()
            yield _new(Token, (kind, start, at, "", False))


def _closing(text: str, opening: re.Match[str], end: int) -> tuple[int, int]:
    """(end of the body, end of the string). A string without an end goes up to the line's end."""
    quote = opening["quote"]
    if not _formatted(opening):
        body = _PLAIN_BODY[quote].match(text, opening.end(), end)
        stop = body.end() if body is not None else end
        return stop, stop + len(quote) if text.startswith(quote, stop) and stop < end else stop
    at, depth = opening.end(), 0
    while at < end:
        char = text[at]
        if char == "\\":
            at = _after_backslash(text, at)
        elif depth == 0 and text.startswith(quote, at):
            return at, at + len(quote)
        elif char == "\n" and len(quote) == 1 and depth == 0:
            return at, at
        elif char in "{}":
            doubled = depth == 0 and text.startswith(char * 2, at)
            at += 2 if doubled else 1
            depth = depth if doubled else max(0, depth + (1 if char == "{" else -1))
        elif depth and char in "'\"" and char != quote:
            inner = text.find(char, at + 1, end)
            at = inner + 1 if inner > 0 else at + 1
        elif depth and text.startswith(quote, at):
            # Before Python 3.12 the quote ended the string wherever it stood.
            inner = _nested_end(text, at, quote, end)
            if inner < 0:
                return at, at + len(quote)
            at = inner
        else:
            at += 1
    return min(at, end), end


def _after_backslash(text: str, at: int) -> int:
    """In an f-string a backslash takes a quote with it; a brace only in a character's name."""
    named = _CHARACTER.match(text, at)
    if named is not None:
        return named.end()
    return at + (1 if text[at + 1 : at + 2] in ("{", "}") else 2)


def _nested_end(text: str, at: int, quote: str, end: int) -> int:
    """The end of a string that begins inside of braces with the quotes of the one around it."""
    line = text.find("\n", at, end) if len(quote) == 1 else end
    line = end if line < 0 else line
    closing = text.find(quote, at + len(quote), line)
    brace = text.find("}", closing, line) if closing > 0 else -1
    return closing + len(quote) if brace > 0 and text.find(quote, brace, line) > 0 else -1


def _formatted(opening: re.Match[str]) -> bool:
    return not set("fFtT").isdisjoint(opening["prefix"])


def _string(
    text: str, opening: re.Match[str], stop: int, after: int, depth: int
) -> Iterator[Token]:
    begin, quote = opening.end(), opening["quote"]
    yield Token("quote", opening.start(), begin, quote)
    if _formatted(opening) and depth < _DEEPEST:
        yield from _formatted_body(text, begin, stop, quote, depth + 1)
    elif begin < stop:
        yield Token("fragment", begin, stop, quote, whole=True)
    if after > stop:
        yield Token("quote", stop, after, quote)


def _formatted_body(text: str, at: int, end: int, quote: str, depth: int) -> Iterator[Token]:
    """Fragments and, between braces, the tokens of expressions."""
    begin = at
    while at < end:
        char = text[at]
        if char == "\\":
            at = _after_backslash(text, at)
        elif char in "{}" and text.startswith(char * 2, at):
            at += 2
        elif char == "{":
            if begin < at:
                yield Token("fragment", begin, at, quote)
            stop, spec = _expression_end(text, at + 1, end)
            yield Token("other", at, at + 1)
            yield from tokens(text, at + 1, spec, depth=depth)
            if spec < stop:
                yield Token("other", spec, spec + 1)
                yield from _specification(text, spec + 1, stop, depth + 1)
            if stop < end:
                yield Token("other", stop, stop + 1)
            begin = at = min(stop + 1, end)
        else:
            at += 1
    if begin < end:
        yield Token("fragment", begin, end, quote)


def _specification(text: str, at: int, end: int, depth: int) -> Iterator[Token]:
    """Of a format: as a string's body, and with expressions of its own."""
    if depth <= _DEEPEST:
        yield from _formatted_body(text, at, end, "", depth)
    elif at < end:
        yield Token("fragment", at, end)


def _expression_end(text: str, at: int, end: int) -> tuple[int, int]:
    """(the closing brace, the colon before the format or the same brace again)"""
    depth, spec = 0, -1
    while at < end:
        char = text[at]
        if char in "'\"":
            closing = text.find(char, at + 1, end)
            at = closing if closing > 0 and spec < 0 else at
        elif char in "([{":
            depth += 1
        elif char == "}" and depth == 0:
            return at, spec if spec >= 0 else at
        elif char in ")]}":
            depth = max(0, depth - 1)
        elif char == ":" and depth == 0 and spec < 0 and not text.startswith(":=", at):
            spec = at
        at += 1
    return end, spec if spec >= 0 else end
