"""Redacts code and what is written like it: expressions, guards, values, node targets.

Every redaction is a list of edits, so that whoever knows a column of the old text can find it in
the new one.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import pairwise

from compilescope.report.sharing.redaction.lexer import NUMBER, Token, tokens
from compilescope.report.sharing.redaction.names import Context, Names

_SUFFIX = re.compile(r"(?:[jJfF]|[uU]?[lL]{1,2})$")
_BASED = re.compile(r"0[xXbBoO]")
_LONGEST_BASED = 4_000
"""Digits: to write more of them as a decimal takes time by their square. Chosen."""


# One number for another, everywhere the same, and in the same order.
#
# 0, 1 and 2 stay, since the rules look at them, and so do the sizes of tensors, which the graphs
# show anyway. Whole numbers stay whole and fractions stay fractions. All numbers must have been
# seen before the first is replaced: an order can only be kept by who knows the whole of it.


class Numbers:
    """First `redact` only notes what there is; after `settle` it replaces."""

    def __init__(self) -> None:
        self._fixed = {Decimal(0), Decimal(1), Decimal(2)}
        self._kept: set[int] = set()
        self._seen: set[Decimal] = set()
        self._new: dict[Decimal, Decimal] | None = None
        self._told: dict[str, str] = {}
        self._largest = Decimal(2)
        """That stands for another."""

    @property
    def many(self) -> int:
        """How many were seen."""
        return len(self._seen)

    def keep(self, value: int) -> None:
        """A size: it stays as it is, wherever it stands."""
        if value not in self._kept:
            self._kept.add(value)
            self._fixed.add(Decimal(abs(value)))

    def redact(self, text: str) -> str:
        """Another number for a literal. It has no sign: that stands before it."""
        if text not in self._told:
            self._told[text] = self._redact(text)
        return self._told[text]

    def _redact(self, text: str) -> str:
        suffix = ""
        if not text.isdecimal() and not _BASED.match(text):
            suffix = "".join(_SUFFIX.findall(text))
        value = _value(text[: len(text) - len(suffix)])
        if value is None:
            return "9"
        if self._new is None:
            self._seen.add(value)
        if self._new is None or value in self._fixed:
            return text
        new = self._new.get(value)
        if new is None:
            self._largest += 1
            new = self._new[value] = self._largest
        if text.isdecimal():
            return f"{new:f}"
        real = not _BASED.match(text) and any(char in text for char in ".eE")
        whole = real and new == new.to_integral_value()
        return f"{new:f}{'.0' if whole else ''}{suffix}"

    def settle(self) -> None:
        """From here on numbers are replaced."""
        self._new = {}
        self._told.clear()
        whole = sorted({value for value in self._seen if _whole(value)} - self._fixed)
        for low, high in _gaps(self._fixed):
            self._place_whole(low, high, _between(low, whole, high))
        points = {*self._fixed, *whole}
        fractions = sorted(self._seen - points)
        for low, high in _gaps(points):
            self._place_fractions(low, _between(low, fractions, high))
        self._largest = max(self._new.values(), default=self._largest)

    def _place_whole(self, low: Decimal, high: Decimal | None, values: list[Decimal]) -> None:
        """Each after the one before, and none in its own place if there is room for another."""
        assert self._new is not None
        self._new[low] = last = low
        for number, value in enumerate(values, 1):
            last += 1
            room = high is None or len(values) - number < high - 1 - last
            if last == value and room:
                last += 1
            self._new[value] = last

    def _place_fractions(self, low: Decimal, values: list[Decimal]) -> None:
        assert self._new is not None
        digits = len(str(len(values))) + 1
        base = self._new[low]
        for parts in (len(values) + 1, len(values) + 2):
            shares = [round(Decimal(number) / parts, digits) for number in range(1, parts)]
            places = [base + share for share in shares[: len(values)]]
            if not set(places) & set(values):
                break
        self._new.update(zip(values, places, strict=True))


def _gaps(points: set[Decimal]) -> list[tuple[Decimal, Decimal | None]]:
    ends: list[Decimal | None] = [*sorted(points), None]
    return [(low, high) for low, high in pairwise(ends) if low is not None]


def _between(low: Decimal, values: list[Decimal], high: Decimal | None) -> list[Decimal]:
    """Those of the values, which are in order, that lie between the two."""
    end = len(values) if high is None else bisect.bisect_left(values, high)
    return values[bisect.bisect_right(values, low) : end]


def _value(text: str) -> Decimal | None:
    plain = text.replace("_", "")
    if len(plain) > _LONGEST_BASED and _BASED.match(plain):
        return None
    try:
        return Decimal(int(plain, 0)) if _BASED.match(plain) else Decimal(plain)
    except (ValueError, InvalidOperation):
        return None


def _whole(value: Decimal) -> bool:
    exponent = value.as_tuple().exponent
    return (isinstance(exponent, int) and exponent >= 0) or value == value.to_integral_value()


Edit = tuple[int, int, str]
"""Start, end, and what stands there instead."""

_NOT_PLAIN = re.compile(r"[^\x00-\x7f]|[#\\]|[rbuftRBUFT]['\"]|\"\"\"|'''|\s[\r\n]")
"""What only the lexer knows: strings with a prefix, of many lines, with escapes; comments."""
_PLAIN = re.compile(
    rf"['\"](?P<string>(?<=')[^'\n]*|(?<=\")[^\"\n]*)['\"]?|(?P<name>[^\W\d]\w*)"
    rf"|(?P<number>{NUMBER.pattern})"
)
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_PUNCTUATION = re.compile(r"[^\w\x80-\U0010ffff\"'\\{}]{0,4}|\\[nrt]")
_SPECIFICATION = re.compile(r"[<>=^]?[-+ ]?[#0]?\d*[,_]?(?:\.\d*)?[a-zA-Z%]?")
_LONGEST_CODE = 100_000
"""Letters of an expression, a guard or a line. Chosen: nobody reads a longer one; it goes as a
whole, so that its length costs hardly anything."""
_MOST_WORDS = 150_000
"""Names, strings and numbers that are replaced one by one. Chosen: far more than a program has; it
bounds time and memory for a run whose every word is another."""
_MADE = re.compile(r"<(?:module|lambda|listcomp|dictcomp|setcomp|genexpr|string)>")


def is_too_long(code: str) -> bool:
    """Is it replaced as a whole?"""
    return len(code) > _LONGEST_CODE


def is_plain(text: str) -> bool:
    """Can the edits of this code be told without its tokens?"""
    return _NOT_PLAIN.search(text) is None


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text after its edits, which are in order and do not overlap."""
    out: list[str] = []
    at = 0
    for start, end, new in edits:
        out += (text[at:start], new)
        at = end
    return "".join((*out, text[at:]))


@dataclass
class Words:
    """The tables behind every redaction of one run."""

    names: Names = field(default_factory=Names)
    numbers: Numbers = field(default_factory=Numbers)
    _functions: dict[str, str] = field(default_factory=dict)
    beyond: set[str] = field(default_factory=set)
    """Texts that go as a whole, since the run has more words than are replaced one by one."""
    _settled: bool = False

    def is_beyond(self, text: str) -> bool:
        """Does this text go as a whole? Decided while the words of the run are learned."""
        if not self._settled and self.names.many + self.numbers.many > _MOST_WORDS:
            self.beyond.add(text)
        return text in self.beyond

    def settle(self) -> None:
        """The whole run has been seen: from here on it is redacted."""
        self._settled = True
        self._functions.clear()
        self.names.settle()
        self.numbers.settle()

    def code(self, text: str, context: Context = "code") -> str:
        """An expression, a guard, a value."""
        if is_too_long(text):
            return self.whole(text)
        plain = is_plain(text)
        edits = self.plain_edits if plain else self._token_edits
        return apply(text, edits(text, context, indices=True))

    def _token_edits(self, text: str, context: Context, *, indices: bool) -> Iterator[Edit]:
        return self.edits(text, tokens(text), context, indices=indices)

    def plain_edits(
        self, text: str, context: Context = "code", *, indices: bool = False
    ) -> Iterator[Edit]:
        """As `edits`, of code that `is_plain`: without tokens, several times as fast."""
        root = ""
        told = self.names.told(context)
        for match in _PLAIN.finditer(text):
            kind, word = match.lastgroup, match[0]
            start, end = match.span()
            if kind == "string":
                inside = match["string"]
                if inside and not (indices and _is_small(inside)):
                    new = self.string(inside, context)
                    if new != inside:
                        yield start + 1, start + 1 + len(inside), new
                continue
            before = text[start - 1] if start else ""
            if before.isspace():
                before = _before(text, start)
            if kind == "name":
                new, root = self._name(word, root, before, context, told)
            elif indices and before == "[" and _is_index(word, text, end):
                continue
            else:
                new = self.numbers.redact(word)
            if new != word:
                yield start, end, new

    def edits(
        self, text: str, parts: Iterable[Token], context: Context = "code", *, indices: bool = False
    ) -> Iterator[Edit]:
        """The edits of these tokens. A comment goes; `indices` in brackets stay."""
        root, before, last = "", "", ""
        told = self.names.told(context)
        for kind, start, end, quote, _ in parts:
            if kind == "space":
                continue
            new = word = text[start:end]
            if kind == "name":
                new, root = self._name(word, root, before, context, told)
            elif kind == "number":
                index = indices and last == "[" and _is_index(word, text, end)
                new = word if index else self.numbers.redact(word)
            elif kind == "fragment":
                new = self._fragment(word, quote, context, indices)
            elif kind == "comment":
                new = ""
            if new != word:
                yield start, end, new
            before, last = word[-1:], word

    def _name(
        self, word: str, root: str, before: str, context: Context, told: Mapping[str, str]
    ) -> tuple[str, str]:
        """The new word, and the root of the dotted name that it belongs to; `told` is what words
        became so far."""
        if before not in (".", "!") and word in told:
            return told[word], word
        if before == "!" and word in ("r", "s", "a"):
            return word, ""  # Of `{value!r}`.
        if before == "." and root:
            return self.names.after_dot(word, root, context), root
        return self.names.redact(word, context), word if before != "." else ""

    def _fragment(self, word: str, quote: str, context: Context, indices: bool) -> str:
        if not quote:
            kept = _SPECIFICATION.fullmatch(word)
            return word if kept else self.names.replace(word, "text", "text")
        if indices and _is_small(word):
            return word  # Of `_modules['3']`.
        return self.string(word, context)

    def whole(self, text: str) -> str:
        """A name for all of it."""
        return self.names.replace(text, "text", "text")

    def function(self, name: str) -> str:
        """A function's name; `<lambda>` and the like stay."""
        new = self._functions.get(name)
        if new is None:
            made = _MADE.fullmatch(name) is not None
            if not made:
                self.names.kinds.setdefault(name, "f")
            new = self._functions[name] = name if made else self._function(name)
        return new

    def _function(self, name: str) -> str:
        if is_too_long(name) or not (name.isascii() and name.isidentifier()):
            return self.code(name)
        # As `code` of a single word, which is what nearly all are.
        return self._name(name, "", "", "code", self.names.told("code"))[0]

    def string(self, content: str, context: Context = "code") -> str:
        """What a string holds: names in it are names, any other text gets a number."""
        if _DOTTED.fullmatch(content):
            return self.dotted(content, context)
        if content.isdecimal() and content.isascii():
            return self.numbers.redact(content)
        if _PUNCTUATION.fullmatch(content):
            return content
        if context == "code":
            self.names.note_text(content)
        return self.names.replace(content, "text", "text")

    def dotted(self, name: str, context: Context = "code") -> str:
        if "." not in name:
            return self.names.redact(name, context)
        told = self.names.told(context)
        whole = told.get(name)
        if whole is None:
            root, *parts = name.split(".")
            new = [self.names.after_dot(part, root, context) for part in parts]
            whole = told[name] = ".".join([self.names.redact(root, context), *new])
        return whole


def _before(text: str, at: int) -> str:
    """The last letter before a place that is no blank; empty where there is none."""
    before = text[at - 1 : at]
    while before.isspace():
        at -= 1
        before = text[at - 1 : at]
    return before


def _is_index(word: str, text: str, end: int) -> bool:
    return _is_small(word) and text[end : end + 1] == "]"


def _is_small(word: str) -> bool:
    """An index of a layer, a dimension or an argument says nothing; an item's number might."""
    return word.isdecimal() and word.isascii() and len(word) <= 2
