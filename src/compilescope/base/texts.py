"""Text that somebody else wrote, on its way to an output: made so that it can only be read.

A record, a log, a file name or a model's answer may hold anything. On a terminal an escape
sequence is obeyed, in markdown a line break begins a heading, in a script it ends a comment. Every
output takes such text through here and through nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from compilescope.base.patterns import late

if TYPE_CHECKING:
    import msgspec

_HIDDEN = late(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1, but for tabs and line breaks.
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # Shown as nothing.
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2"  # The other marks of format.
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # Widths of zero, separators, directions.
    "\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # Halves of pairs, and what is no character.
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"  # Tags: ASCII that nobody sees.
    + "".join(
        f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(1 << 16, 17 << 16, 1 << 16)
    )
    + "]"
)
"""What steers a terminal, turns or hides the text around it, or cannot be encoded. A terminal, a
page and an editor show none of these as what it is."""
_UNCOMMON = late("[^\t\n -~\xa1-\xac\xae-\u02ff\u2010-\u2027\u2030-\u205e\u2190-\u2bff]+")
"""Where something hidden may stand: neither in ASCII nor among Latin letters, dashes, arrows and
drawn lines. Most text has none of these, and `_HIDDEN` takes ten times as long to compile."""
_HALVES = late("[\ud800-\udfff]")
_NOT_IN_NAMES = late(r"[^\w.-]+")
_BEYOND_ASCII = late(r"[^\x00-\x7f]")
_WORKFLOW_COMMAND = late(r"^[^\S\n]*:(?=:)|##(?=\[)", re.MULTILINE)
_BACKTICKS = late(r"`+")
_MARKUP = late(r"([\\`*_{}\[\]<>#|~]|&(?=#?\w+;))")
_BEGINNING = late(r"\s*(?:(?=[-+=](?:\s|[-=]|$))|\d{1,9}(?=[.)](?:\s|$)))")

_MOST_TOGETHER = 1 << 14
"""Letters of JSON. Chosen: some dozens of entries, of which each is a few hundred."""
_MOST_DIGITS = 18
"""As many as always fit in 64 bits."""


def visible(text: str) -> str:
    """What is hidden in it is spelled as Python spells it (`\\x1b`, `\\u202e`), all else stays.

    Line breaks and tabs stay too: whoever needs one line takes `one_line`.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNCOMMON.sub(_made_visible, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Visible, with blanks for line breaks: for a cell, a title, a comment in a script."""
    return " ".join(visible(text).split())


def code_span(text: str) -> str:
    """Markdown that shows the text as code, on one line, whatever stands in it."""
    text = visible(text).replace("\n", " ")
    if not text.strip(" "):
        return text
    if "\\|" in text:
        # In a cell, readers differ on whether this bar is escaped.
        return f"<code>{as_prose(text)}</code>"
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    # A bar would end the cell of a table even inside code.
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def fenced(text: str, language: str = "") -> str:
    """Markdown that shows the text as a block of code, whatever stands in it."""
    text = visible(text)
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def as_prose(text: str) -> str:
    """Markdown that reads as the text, on one line: no heading, image, HTML, emphasis or cell."""
    return _MARKUP.sub(r"\\\1", visible(text).replace("\n", " "))


def begun(line: str) -> str:
    """A line of markdown that begins no list, rule, heading or block of code."""
    found = _BEGINNING.match(line)
    return f"{found[0].strip()}\\{line[found.end() :]}" if found else line.lstrip(" \t")


def without_commands(text: str) -> str:
    """Lines that GitHub Actions obeys no command in: `::name::` at the beginning of a line, and
    `##[name]` anywhere, get a blank."""
    return _WORKFLOW_COMMAND.sub(r"\g<0> ", text)


def in_docstring(text: str) -> str:
    """Text for between the quotes of a docstring: it neither ends it nor escapes anything."""
    return visible(text).replace("\\", "\\\\").replace('"""', "'''")


def file_stem(text: str) -> str:
    """A name for a new file, in the folder that the caller chose and in no other."""
    return _NOT_IN_NAMES.sub("_", text).strip("._")[:100]


def whole_number(text: str) -> int | None:
    """The number that text of others stands for; None where it is none, or larger than any count.

    `int` takes neither every digit that `isdigit` knows ("\u00b2") nor any number of them.
    """
    plain = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if plain else None


def plain_json(value: Any, *, indent: int = 0) -> str:
    """JSON without a character that steers or hides: those are written as JSON's own escapes, so
    nothing is lost. A lone surrogate has no valid form there, and is spelled out."""
    import msgspec

    text = escaped_json(encode_json(value).decode())
    return msgspec.json.format(text, indent=indent) if indent else text


def json_parts(value: Mapping[str, Any], *, indent: int = 0) -> Iterator[str]:
    """The text of `plain_json` in parts, none much larger than an entry of one of its lists. An
    iterator is written as a list: what it gives is never all there at once."""

    def at(depth: int) -> str:
        return "\n" + " " * (indent * depth) if indent else ""

    def drawn(each: Any, depth: int) -> str:
        # No string of JSON holds the end of a line.
        return plain_json(each, indent=indent).replace("\n", at(depth))

    before = "{"
    for key, each in value.items():
        yield f"{before}{at(1)}{plain_json(key)}:{' ' if indent else ''}"
        before = ","
        if not isinstance(each, list | tuple | Iterator):
            yield drawn(each, 1)
            continue
        mark = "["
        for entries in _some_at_a_time(each):
            # As a list of its own, without its brackets and the line ends inside them.
            text = drawn(entries, 1)
            yield mark + text[1 : -1 - len(at(1))]
            mark = ","
        yield "[]" if mark == "[" else f"{at(1)}]"
    yield "{}" if before == "{" else f"{at(0)}}}"


def _some_at_a_time(entries: Iterable[Any]) -> Iterator[list[msgspec.Raw]]:
    """The entries as JSON, some thousand letters of them together: of 100,000 small ones each would
    cost more than it says."""
    import msgspec

    some: list[msgspec.Raw] = []
    letters = 0
    for entry in entries:
        written = encode_json(entry)
        some.append(msgspec.Raw(written))
        letters += len(written)
        if letters > _MOST_TOGETHER:
            yield some
            some, letters = [], 0
    if some:
        yield some


def encode_json(value: Any, encoder: msgspec.json.Encoder | None = None) -> bytes:
    """As msgspec does it; only what it does not take costs more."""
    try:
        return (encoder or _json_encoder()).encode(value)
    except UnicodeEncodeError:
        import msgspec

        whole = encodable(msgspec.to_builtins(value, order=None))
        return (encoder or _json_encoder()).encode(whole)


def encodable(value: Any) -> Any:
    """The value as UTF-8 can hold it: half of a character, or a byte of a file name that is not
    UTF-8, is spelled as `visible` spells it. No encoder takes these."""
    if isinstance(value, str):
        return value if value.isascii() else _HALVES.sub(_spelled, value)
    if isinstance(value, dict):
        return {encodable(key): encodable(each) for key, each in value.items()}
    return [encodable(each) for each in value] if isinstance(value, list | tuple) else value


def escaped_json(text: str) -> str:
    """JSON that somebody wrote, with what is hidden in its strings as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return _UNCOMMON.sub(lambda found: _HIDDEN.sub(_json_escape, found[0]), text)


def ascii_json(text: str) -> str:
    """JSON that any encoding can hold."""
    return _BEYOND_ASCII.sub(_json_escape, text)


@lru_cache(maxsize=1)
def _json_encoder() -> msgspec.json.Encoder:
    import msgspec  # Not with the module: most of what needs this one writes no JSON.

    return msgspec.json.Encoder()


def _longest_run(text: str) -> int:
    return max(map(len, _BACKTICKS.findall(text)), default=0)


@lru_cache(maxsize=4096)
def _spell(character: str) -> str:
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:
        return f"\\x{number - 0xDC00:02x}"  # A byte of a file name that is no UTF-8.
    return character.encode("unicode_escape").decode("ascii")


def _made_visible(found: re.Match[str]) -> str:
    return _HIDDEN.sub(_spelled, found[0])


def _spelled(found: re.Match[str]) -> str:
    return _spell(found[0])


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
