"""Code in colours, line by line, for pages. The colours stand in stylesheets.
Python is read here, in a fraction of the time of Pygments, which reads what else there is.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from compilescope.base.patterns import late
from compilescope.base.texts import visible
from compilescope.report.render.safe_html import escape

_DIGITS = r"\d(?:_?\d)*"
_NAME = r"[A-Za-z_]\w*"
_TOKEN = late(
    r"(?P<space>[ \t]+)"
    r"|(?P<comment>#.*)"
    r"""|(?P<formatted>(?:[rR]?[fFtT]|[fFtT][rR])["'])"""
    r"""|(?P<affix>[rR][bB]?|[bB][rR]?|[uU])?(?P<quote>\"{3}|'{3}|["'])"""
    rf"|(?P<defines>def|class)(?P<gap>[ \t]+)(?P<defined>{_NAME})?"
    rf"|(?P<from>from)[ \t]+(?P<module>(?:\.|{_NAME})*)(?:[ \t]+(?P<imports>import)\b)?"
    r"|(?P<import>import)[ \t]"
    rf"|(?P<word>{_NAME})"
    rf"|(?P<number>(?:{_DIGITS}\.(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?"
    rf"|{_DIGITS}[eE][+-]?{_DIGITS}j?|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+"
    rf"|0[xX](?:_?[a-fA-F0-9])+|{_DIGITS})"
    rf"|(?P<decorator>@{_NAME})"
    r"""|(?P<other>[^\w\s"'#@.]+|.)""",
    re.ASCII,
)
_INSIDE = (
    r"%(?:\(\w+\))?[-#0 +]*(?:[1-9]\d*|\*)?(?:\.(?:\d+|\*))?[hlL]?[diouxXeEfFgGcrsa%]"
    r"|\{(?:\w+(?:\.\w+|\[[^\]]+\])*)?(?:![sra])?"
    r"(?::(?:.?[<>=^])?[-+ ]?#?0?(?:\d+)?,?(?:\.\d+)?[bcdeEfFgGnosxX%]?)?\}"
    r"""|[^'"%{]+|['"]|%|\{{1,2}"""
)
_STRING = {quote: late(f"(?P<end>{quote})|{_INSIDE}") for quote in ("'", '"', "'''", '"""')}
"""What stands in a string up to its end. Neither of the two kinds of placeholders may be missing:
each is a token of its own."""
_ODD = late(r"[^\n\t -~…⋯·]|\\")
"""Other alphabets and escapes; not the marks that stand where a long line was cut."""
_BEGUN = late(r"""[ \t]*(?:(?:match|case|lazy)\b|[rRuUbB]{0,2}(?:\"{3}.*\"{3}|'{3}.*'{3}))""")
_WITHIN = late(r"\b__\w+__\b|\byield[ \t]+from\b|\b(?:import|from)[ \t]*$")
_WORDS_WITHIN = ("__", "yield", "import", "from")
"""One of them is in what `_WITHIN` finds, and in few lines else: this is ten times as fast."""
_OPENED = late(r"""(?P<indent>[ \t]*)(?P<affix>[rRuUbB]{0,2})(?P<quote>\"{3}|'{3})""")
_KEYWORD_NAMES = """False None True and as assert async await break continue del elif else except
finally for global if in is lambda nonlocal not or pass raise return try while with yield"""
_BUILTIN_NAMES = """Ellipsis NotImplemented abs aiter all any bin bool breakpoint bytearray bytes
callable chr classmethod cls compile complex delattr dict dir divmod enumerate eval filter float
format frozenset getattr globals hasattr hash hex id input int isinstance issubclass iter len list
locals map max memoryview min next object oct open ord pow print property range repr reversed round
self set setattr slice sorted staticmethod str sum super tuple type vars zip"""
_KEYWORDS = frozenset(_KEYWORD_NAMES.split())
_BUILTINS = frozenset(_BUILTIN_NAMES.split())
WORDS = {"k": ["class", "def", "from", "import", *sorted(_KEYWORDS)], "b": sorted(_BUILTINS)}
"""Words with a colour, by their class: for a script that colours lines when they are shown."""
_AS = late(r"[ \t]+as[ \t]+")
_IMPORTED = late(rf"[ \t]+as[ \t]+|[ \t]*,[ \t]*|\.|{_NAME}", re.ASCII)
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
    return _by_pygments(text) if "\r" in text or text[:1] == "\ufeff" else _by_both(text)


def _by_pygments(text: str) -> list[list[Token]]:
    return _split(_lexer().get_tokens(text))


def _split(tokens: Iterable[tuple[Any, str]]) -> list[list[Token]]:
    """By line."""
    lines: list[list[Token]] = [[]]
    for kind, value in tokens:
        style = _style(kind)
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append((style, part))
    return lines


def _by_both(text: str) -> list[list[Token]]:
    """Plain lines and docstrings are read here, the lines between by Pygments: few of a file."""
    lines = text.split("\n")
    found: list[list[Token]] = []
    left = 0
    """Where the lines begin that neither has read."""
    at = 0
    while at < len(lines):
        read = _plain_line(lines[at]) or _docstring(lines, at)
        if read is None:
            at += 1
            continue
        if left < at:
            between = _whole_lines("\n".join(lines[left:at]))
            if between is None:
                break
            found += between
        found += read
        left = at = at + len(read)
    if left < len(lines):
        found += _by_pygments("\n".join(lines[left:]))
    return found


def _plain_line(line: str) -> list[list[Token]] | None:
    if '"""' in line or "'''" in line:
        return None  # It may go on in the next.
    return plain_tokens(line)


def _docstring(lines: list[str], first: int) -> list[list[Token]] | None:
    """From its line to the one that it ends; None where none begins, or something follows it."""
    opened = _OPENED.match(lines[first])
    if opened is None:
        return None
    quote = opened["quote"]
    text = lines[first][opened.end() :]
    last = first
    while quote not in text:
        last += 1
        if last == len(lines):
            return None
        text = lines[last]
    if text.partition(quote)[2]:
        return None
    begun: list[Token] = [("", opened["indent"]), ("s", opened["affix"])]
    begun.append(("s", lines[first][opened.start("quote") :]))
    rest = lines[first + 1 : last + 1]
    return [[token for token in begun if token[1]], *([("s", t)] if t else [] for t in rest)]


def _whole_lines(text: str) -> list[list[Token]] | None:
    """By Pygments; None where what began in them goes on in the next line: then that line would not
    define a function."""
    lines = _by_pygments(f"{text}\ndef f")
    return lines[:-1] if lines[-1] == [("k", "def"), ("", " "), ("f", "f")] else None


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


# Python's plain lines in colours, by one expression: what Pygments makes of them, token by token.
#
# Pygments tries some forty expressions at each token, and takes longer to import than a small page
# takes to draw. What this cannot read exactly as it does is left to it: see `plain_tokens`.


class _LeftToPygments(Exception):
    pass


def plain_tokens(text: str) -> list[list[tuple[str, str]]] | None:
    """Each line's tokens, with their classes; None where Pygments must read the text: formatted
    strings, escapes, strings over several lines, soft keywords, other alphabets."""
    if _ODD.search(text) is not None:
        return None
    lines = text.split("\n")
    if len(lines) > 1 and ('"""' in text or "'''" in text):
        return None
    if any(map(_is_left_alone, lines)):
        return None
    try:
        return [list(_tokens(line)) for line in lines]
    except _LeftToPygments:
        return None


def _is_left_alone(line: str) -> bool:
    if _BEGUN.match(line) is not None:
        return True
    if not any(word in line for word in _WORDS_WITHIN):
        return False
    return _WITHIN.search(line) is not None or _imports_more(line)


def _imports_more(line: str) -> bool:
    """Does an import go on in the next line?"""
    return line.rstrip(" \t").endswith(",") and ("import " in line or "import\t" in line)


def _tokens(line: str) -> Iterator[tuple[str, str]]:
    at, end, match = 0, len(line), _TOKEN.match
    while at < end:
        found = match(line, at)
        assert found is not None, "one of its alternatives takes any character"
        kind, text, at = found.lastgroup, found[0], found.end()
        if kind == "word":
            yield _word_style(line, found.start(), text), text
        elif kind == "quote":
            if found["affix"]:
                yield "s", found["affix"]
            yield "s", found["quote"]
            for piece in _pieces(line, at, found["quote"]):
                at += len(piece)
                yield "s", piece
        elif kind in _STYLES:
            yield _STYLES[kind], text
        elif kind == "import":
            yield "k", text[:-1]
            at = yield from _imported(line, at - 1)
        else:
            yield from _statement(kind, found)


_STYLES = {"space": "", "comment": "c", "number": "n", "decorator": "f", "other": ""}


def _word_style(line: str, at: int, word: str) -> str:
    if word in _KEYWORDS:
        return "k"
    return "b" if word in _BUILTINS and line[at - 1 : at] != "." else ""


def _pieces(line: str, at: int, quote: str) -> Iterator[str]:
    """Of a string, its closing quote included; of one that is not closed here, all of the line."""
    for found in _STRING[quote].finditer(line, at):
        yield found[0]
        if found["end"]:
            return


def _imported(line: str, at: int) -> Generator[tuple[str, str], None, int]:
    """What follows `import`: no name there is a builtin. Returns where it ends."""
    start = at
    while line[at : at + 1] in (" ", "\t"):
        at += 1
    yield "", line[start:at]
    while (found := _IMPORTED.match(line, at)) is not None:
        text, at = found[0], found.end()
        if _AS.fullmatch(text):
            lead = len(text) - len(text.lstrip())
            yield from (("", text[:lead]), ("k", "as"), ("", text[lead + 2 :]))
        else:
            yield "", text
    return at


def _statement(kind: str | None, found: re.Match[str]) -> Iterator[tuple[str, str]]:
    """`def name`, `class Name`, `from module import`."""
    if kind in ("defined", "gap"):
        if kind == "gap" and found["defines"] == "class":
            raise _LeftToPygments
        yield from (("k", found["defines"]), ("", found["gap"]))
        if kind == "defined":
            yield "f", found["defined"]
        return
    if kind not in ("module", "imports") or "None" in found["module"]:
        raise _LeftToPygments
    text, imports = found[0], found["imports"] or ""
    yield from (("k", "from"), ("", text[4 : len(text) - len(imports)]))
    if imports:
        yield "k", imports
