"""Code in colours, line by line, for pages. Pygments reads it; the colours stand in stylesheets."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from compilescope.report.render.plain_code import plain_tokens
from compilescope.report.render.safe_html import escape
from compilescope.texts import visible

Token = tuple[str, str]
"""A class of the stylesheet, empty for none, and a piece of one line."""
_LONGEST = 200_000
"""A text with more characters stays black: nobody waits for its colours. Chosen."""
_LONGEST_KEPT = 5_000
"""Letters of a text whose tokens are remembered. Chosen: excerpts come again, whole files do
not."""


def code_lines(source: str) -> list[Markup]:
    """Each line of a Python text as HTML."""
    return [line_html(tokens) for tokens in code_tokens(source)]


def code_tokens(source: str) -> list[list[Token]]:
    """Each line of a Python text as its tokens, all characters in their places."""
    text = visible(source)
    if len(text) > _LONGEST:
        return [[("", line)] for line in text.split("\n")]
    return _kept(text) if len(text) <= _LONGEST_KEPT else _lexed(text)


def _lexed(text: str) -> list[list[Token]]:
    plain = plain_tokens(text)
    if plain is not None:
        return plain
    lines: list[list[Token]] = [[]]
    for kind, value in _lexer().get_tokens(text):
        style = _style(kind)
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append((style, part))
    return lines


@lru_cache(maxsize=64)
def _kept(text: str) -> list[list[Token]]:
    """The same lines are shown with many causes: nobody changes what is returned."""
    return _lexed(text)


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


@lru_cache(maxsize=1)
def _lexer() -> Any:
    from pygments.lexers import PythonLexer

    return PythonLexer(stripnl=False, ensurenl=False)


@lru_cache(maxsize=256)
def _style(kind: Any) -> str:
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    styles = (
        (Comment, "c"), (String, "s"), (Number, "n"), (Operator.Word, "k"), (Keyword, "k"),
        (Name.Function, "f"), (Name.Class, "f"), (Name.Decorator, "f"), (Name.Builtin, "b"),
    )  # fmt: skip
    return next((name for token, name in styles if kind in token), "")
