"""Code in colours as plain text: a control character stands where a colour begins.

A script sets such text as text, never as HTML, so nothing in it can do anything. Lines are read
one by one, whatever stands above them: a kernel inside a string then has the colours of code.
"""

from __future__ import annotations

import builtins
import keyword
import re
from functools import lru_cache

from compilescope.patterns import late
from compilescope.report.render.code_colors import Token, code_tokens
from compilescope.report.render.plain_code import BUILTINS, KEYWORDS
from compilescope.texts import visible

STYLES = ("", "k", "s", "c", "n", "f", "b")
"""Classes of the stylesheet. A piece in the n-th begins with chr(n + 1)."""
_MARK = {style: chr(number) for number, style in enumerate(STYLES, 1)}
_WORD = late(r"([^\W\d]\w*|\d(?:[\w.]|(?<=e)-)*)")
_PREFIXES = {"b", "br", "f", "fr", "r", "rb", "t", "u"}
_KNOWN = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "self", "cls", *_PREFIXES}
"""Words that decide about colours: any other word or number is as good as the next."""
_QUOTES = ('"""', "'''")
_NUMBER = r"\d[\w.]*(?:(?<=e)-[\w.]*)*"
# The first letter of each alternative decides, and the most frequent come first.
_PIECE = late(
    rf"""[^\w"'#.@]+|[A-Za-z_]\w*["']?|{_NUMBER}|\.[A-Za-z_]\w*["']?"""
    rf"""|"[^"]*"?|'[^']*'?|#.*|\.{_NUMBER}|.""",
    re.ASCII,
)
_LONE = {"def", "class", "from", "import", "match", "case", "lazy", "yield"}
"""Words that decide about the colours of what follows."""


def marked_lines(lines: list[str], *, whole: bool = False) -> list[str]:
    """`whole`: a text of the user's own, in which strings may go over several lines."""
    if whole and any(quotes in line for line in lines for quotes in _QUOTES):
        return [_joined(tokens) for tokens in code_tokens("\n".join(lines))]
    return [marked_line(line) for line in lines]


class _PieceMarks(dict[str, str]):
    """The mark of each piece of a line; empty where more than the piece decides about it: it begins
    a string with a prefix, holds a placeholder, is a keyword after a dot."""

    def __missing__(self, piece: str) -> str:
        first = piece[0]
        if first in "\"'#":
            # Not kept: there are too many of them.
            plain = first == "#" or "{" not in piece
            return _MARK["c" if first == "#" else "s"] if plain else ""
        name = piece.removeprefix(".")
        if first == "@" or piece[-1] in "\"'" or name in _LONE or name.startswith("__"):
            mark = ""
        elif name[:1].isdigit():
            mark = _MARK["n"]
        elif piece in KEYWORDS or piece in BUILTINS:
            mark = _MARK["k" if piece in KEYWORDS else "b"]
        else:
            mark = "" if name in KEYWORDS else _MARK[""]
        return self.setdefault(piece, mark) if len(self) < _MOST_PIECES else mark


_MOST_PIECES = 50_000
"""Chosen: some megabytes."""
_PIECE_MARKS = _PieceMarks()


@lru_cache(maxsize=50_000)
def marked_line(line: str) -> str:
    line = visible(line)
    if not line.isascii() or "\\" in line or '"""' in line or "'''" in line:
        return _by_likeness(line)
    before = _MARK[""]
    parts: list[str] = []
    for piece in _PIECE.findall(line):
        mark = _PIECE_MARKS[piece]
        if mark == before:
            parts.append(piece)
        elif mark:
            parts.append(mark + piece)
            before = mark
        else:
            return _by_likeness(line)
    return "".join(parts)


def _by_likeness(line: str) -> str:
    """Lines that differ in names and numbers alone are lexed once: a run has thousands of those."""
    parts = _WORD.split(line)
    words = parts[1::2]
    parts[1::2] = map(_alike, words)
    parts[::2] = _between("".join(parts))
    parts[1::2] = words
    return "".join(parts)


@lru_cache(maxsize=50_000)
def _alike(word: str) -> str:
    return word if word in _KNOWN else "1" if word[0].isdigit() else "x"


@lru_cache(maxsize=20_000)
def _between(line: str) -> tuple[str, ...]:
    """What stands before, between and after the words of a line, with its marks."""
    styles = [style for tokens in code_tokens(line) for style, text in tokens for _ in text]
    found: list[str] = []
    before, at, literal = "", 0, ""
    for number, part in enumerate(_WORD.split(line)):
        for character in part if number % 2 == 0 else part[:1]:
            style = styles[at]
            literal += _MARK[style] if style != before else ""
            literal += character if number % 2 == 0 else ""
            before, at = style, at + 1
        if number % 2:
            at += len(part) - 1
            found.append(literal)
            literal = ""
    return (*found, literal)


def _joined(tokens: list[Token]) -> str:
    before = ""
    parts = []
    for style, text in tokens:
        parts.append((_MARK[style] if style != before else "") + text)
        before = style
    return "".join(parts)
