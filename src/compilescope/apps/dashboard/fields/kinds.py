"""The kinds of fields in forms: how each is drawn, checked, and written on a command line.

Whatever a browser sends is text. A kind makes of it a value or a sentence on what is wrong with it;
a value can never become another option.
"""

from __future__ import annotations

import difflib
import math
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilescope.apps.dashboard.fields.choices import Option
from compilescope.base.folders import Folders

# Chosen: letters of a field, as of a path, and values of one that takes several.
_MOST_TEXT = 4096
_MOST_VALUES = 100
NAME = re.compile(r"[A-Za-z_][\w.-]*")
DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class WrongValue(Exception):
    """What is wrong with a value, in a sentence."""


@dataclass(frozen=True)
class FormPlace:
    """Where a form is filled in: what it may name."""

    folders: Folders
    home: Path


class FieldKind:
    """One kind of field. `read` gets the texts that were given: one at least, none empty."""

    control = "text"
    """The macro that draws it."""
    several = False
    """It may be given more than once."""

    def read(self, given: list[str], place: FormPlace) -> Any:
        return given[0]

    def words(self, option: str, value: Any) -> list[str]:
        """On the command line; an empty option: a word that stands for itself."""
        return optional(option, str(value))

    @property
    def suggestions(self) -> Sequence[Option]:
        """To choose from; others can be typed."""
        return ()

    @property
    def attributes(self) -> dict[str, str]:
        """Of the control."""
        return {}


def optional(option: str, value: str) -> list[str]:
    if not option:
        return [value]
    # A value that looks like an option is one word with its own.
    return [f"{option}={value}"] if value.startswith("-") else [option, value]


@dataclass(frozen=True)
class Flag(FieldKind):
    """Yes or no."""

    control = "checkbox"

    def read(self, given: list[str], place: FormPlace) -> bool:
        if given[0] not in ("on", "1", "true"):
            raise WrongValue("This is on or not there.")
        return True

    def words(self, option: str, value: Any) -> list[str]:
        return [option] if value else []


@dataclass(frozen=True)
class Text(FieldKind):
    """A name that fits a pattern."""

    pattern: re.Pattern[str] = NAME
    wrong: str = "This is not a valid name."
    offered: Callable[[], Sequence[Option]] = tuple
    only_offered: bool = False

    def read(self, given: list[str], place: FormPlace) -> str:
        if not self.pattern.fullmatch(given[0]):
            raise WrongValue(self.wrong)
        known = {option.value for option in self.suggestions}
        if self.only_offered and known and given[0] not in known:
            near = difflib.get_close_matches(given[0], known, n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise WrongValue(f"There is no {given[0]!r} here.{hint}")
        return given[0]

    @property
    def suggestions(self) -> Sequence[Option]:
        return self.offered()


@dataclass(frozen=True)
class OneOf(FieldKind):
    """One of a few."""

    options: tuple[str, ...]
    control = "select"

    def read(self, given: list[str], place: FormPlace) -> str:
        if given[0] not in self.options:
            raise WrongValue(f"Choose one of: {', '.join(self.options)}.")
        return given[0]

    @property
    def suggestions(self) -> Sequence[Option]:
        return [Option(value) for value in self.options]


@dataclass(frozen=True)
class Checks(FieldKind):
    """Any number of a few."""

    offered: Callable[[], Sequence[Option]]
    control = "checks"
    several = True

    def read(self, given: list[str], place: FormPlace) -> list[str]:
        known = [option.value for option in self.offered()]
        for value in given:
            if value not in known:
                raise WrongValue(f"There is no {value!r} to choose.")
        return [value for value in known if value in given]

    def words(self, option: str, value: Any) -> list[str]:
        return [word for each in value for word in optional(option, each)]

    @property
    def suggestions(self) -> Sequence[Option]:
        return self.offered()


@dataclass(frozen=True)
class WholeNumber(FieldKind):
    """A whole number."""

    low: int | None = 1
    high: int = 1_000_000_000
    control = "number"

    def read(self, given: list[str], place: FormPlace) -> int:
        if not re.fullmatch(r"[+-]?\d{1,12}", given[0], re.ASCII):
            raise WrongValue("This is not a whole number.")
        return int(_within(float(given[0]), self.low, self.high))

    @property
    def attributes(self) -> dict[str, str]:
        low = {} if self.low is None else {"min": str(self.low)}
        return {**low, "max": str(self.high), "step": "1", "inputmode": "numeric"}


@dataclass(frozen=True)
class Number(FieldKind):
    """A number."""

    low: float = 0.0
    high: float = 1e9
    above: bool = False
    """`low` itself is too small."""
    control = "number"

    def read(self, given: list[str], place: FormPlace) -> float:
        try:
            value = float(given[0])
        except ValueError:
            raise WrongValue("This is not a number.") from None
        if not math.isfinite(value):
            raise WrongValue("This is not a number.")
        if self.above and value <= self.low:
            raise WrongValue(f"This must be more than {self.low:g}.")
        return _within(value, self.low, self.high)

    def words(self, option: str, value: Any) -> list[str]:
        return optional(option, f"{value:.12g}")

    @property
    def attributes(self) -> dict[str, str]:
        return {"min": f"{self.low:g}", "step": "any", "inputmode": "decimal"}


def _within(value: float, low: float | None, high: float) -> float:
    if low is not None and value < low:
        raise WrongValue(f"This must be at least {low:g}.")
    if value > high:
        raise WrongValue(f"This must be at most {high:g}.")
    return value


@dataclass(frozen=True)
class NameList(FieldKind):
    """Several names in one line."""

    pattern: re.Pattern[str] = DOTTED
    wrong: str = "{!r} is not a name."
    offered: Callable[[], Sequence[Option]] = tuple

    def read(self, given: list[str], place: FormPlace) -> list[str]:
        names = list(dict.fromkeys(re.split(r"[\s,]+", given[0].strip(" ,"))))
        for name in names:
            if not self.pattern.fullmatch(name):
                raise WrongValue(self.wrong.format(name))
        return names

    def words(self, option: str, value: Any) -> list[str]:
        return [word for each in value for word in optional(option, each)]

    @property
    def suggestions(self) -> Sequence[Option]:
        return self.offered()


@dataclass(frozen=True)
class ProgramArguments(FieldKind):
    """The program's own arguments, as one types them in a shell."""

    control = "line"

    def read(self, given: list[str], place: FormPlace) -> list[str]:
        return split_words(given[0])

    def words(self, option: str, value: Any) -> list[str]:
        return list(value)


DURATION = Text(re.compile(r"\d+(?:\.\d+)?\s*[smh]?"), "Give a time such as 90s, 10m or 1h.")
SITE = Text(re.compile(r"[^-:][^:]*:\d+"), "Give a file and a line, such as model.py:12.")
RULES = NameList(re.compile(r"\w[\w.-]*"))


def split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise WrongValue(f"The quotes are not balanced: {error}.") from None


@dataclass(frozen=True)
class Field:
    """One thing to fill in."""

    name: str
    """Of the control and of the query parameter that fills it in."""
    label: str
    kind: FieldKind
    option: str = ""
    """What it stands for on the command line; empty: a word of its own, in the fields' order."""
    help: str = ""
    required: bool = False
    default: str = ""
    """What the command takes where nothing is given; it is then not written."""
    example: str = ""
    on_line: bool = True
    """False: it is no part of the command line."""


def read_field(field: Field, given: Sequence[str], place: FormPlace) -> Any:
    """Its value; None where nothing was given."""
    texts = [text.strip() for text in given]
    texts = [text for text in texts if text]
    if not texts:
        if field.required:
            raise WrongValue("This is required.")
        return None
    if len(texts) > (_MOST_VALUES if field.kind.several else 1):
        raise WrongValue("Give one value." if not field.kind.several else "These are too many.")
    for text in texts:
        if len(text) > _MOST_TEXT:
            raise WrongValue(f"This is longer than {_MOST_TEXT:,} characters.")
        if not text.isprintable():
            raise WrongValue("Line breaks and control characters can't be used here.")
    return field.kind.read(texts, place)
