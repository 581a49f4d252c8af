"""The kinds of fields in forms: how each is drawn, checked, and written on a command line; and the
folders that a browser may name files in, nothing outside of them.

Whatever a browser sends is text. A kind makes of it a value or a sentence on what is wrong with it;
a value can never become another option.

A path comes from a request. It is followed to where it really leads (links, `..`,
`/proc/self/root`) and only then compared with the folders that the user allowed.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import shlex
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilescope.apps.dashboard.fields.choices import Option
from compilescope.base.errors import ToolError

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


_MOST_CHARACTERS = 4096
"""Of a path: Linux takes no longer one."""
_MOST_ENTRIES = 2000
"""Of one folder: the rest is not listed. Chosen: more than people look through."""
_SEARCH_S = 1.0
"""Chosen: a form must open; a path can be typed, too."""
_NEVER = tuple(map(Path, ("/proc", "/sys", "/dev")))
"""No programs there, but ways to everything else."""
_SKIPPED = ("__pycache__", "site-packages", "dist-packages", "node_modules")


@dataclass(frozen=True)
class FolderListing:
    """What a folder offers to choose from."""

    folder: Path
    parent: Path | None
    """None: the folders above are not allowed."""
    folders: tuple[Path, ...]
    scripts: tuple[Path, ...]
    complete: bool
    """False: it holds more entries than are listed."""


class Folders:
    """The allowed folders. An empty list allows nothing."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self.folders = tuple(dict.fromkeys(folder.resolve() for folder in folders))

    def check(self, path: str | Path) -> Path:
        """The file or folder that `path` leads to, absolute and without links.

        A relative path is looked for in each of the allowed folders."""
        text = str(path)
        if not text.strip() or "\0" in text or len(text) > _MOST_CHARACTERS:
            raise ToolError("This is not a valid path.")
        tried = [Path(text)] if Path(text).is_absolute() else [f / text for f in self.folders]
        inside = [found for one in tried if (found := self._inside(one)) is not None]
        if not inside:
            raise ToolError(f"{text} is outside the folders you allowed.", hint=self._hint())
        for found in inside:
            if _is_plain(found):
                return found
        raise ToolError(f"There is no file or folder {text}.")

    def check_script(self, path: str | Path) -> Path:
        """A Python file that can be run."""
        found = self.check(path)
        if found.suffix != ".py" or not found.is_file():
            raise ToolError(f"{path} is not a Python file.")
        if not os.access(found, os.R_OK):
            raise ToolError(f"{path} can't be read.")
        return found

    def check_folder(self, path: str | Path) -> Path:
        found = self.check(path)
        if not found.is_dir():
            raise ToolError(f"{path} is not a folder.")
        return found

    def browse(self, folder: str | Path) -> FolderListing:
        """The folders and Python files right in it."""
        found = self.check_folder(folder)
        entries = list(_entries(found))
        parent = found.parent if self._holds(found.parent) and found.parent != found else None
        return FolderListing(
            found,
            parent,
            tuple(path for path in map(self._folder_at, entries) if path is not None),
            tuple(path for path in map(self._script_at, entries) if path is not None),
            complete=len(entries) < _MOST_ENTRIES,
        )

    def scripts(self, limit: int = 500) -> list[Path]:
        """Python files below the allowed folders, those that lie nearest first. A search that takes
        long ends early: a path can be typed, too."""
        found: dict[Path, None] = {}
        seen = set(self.folders)
        waiting = deque(self.folders)
        end = time.monotonic() + _SEARCH_S
        while waiting and len(found) < limit and time.monotonic() < end:
            for entry in _entries(waiting.popleft()):
                if (script := self._script_at(entry)) is not None:
                    found.setdefault(script)
                elif (below := self._folder_at(entry)) is not None and below not in seen:
                    seen.add(below)
                    waiting.append(below)
        return list(found)[:limit]

    def _folder_at(self, entry: os.DirEntry[str]) -> Path | None:
        path = self._shown(entry)
        if path is None or not _is(entry.is_dir) or path.name in _SKIPPED:
            return None
        return None if _is((path / "pyvenv.cfg").is_file) else path

    def _script_at(self, entry: os.DirEntry[str]) -> Path | None:
        path = self._shown(entry)
        return path if path is not None and path.suffix == ".py" and _is(entry.is_file) else None

    def _shown(self, entry: os.DirEntry[str]) -> Path | None:
        """Where it leads, if that may be shown."""
        if entry.name.startswith(".") or not entry.name.isprintable():
            return None
        return self._inside(Path(entry.path)) if _is(entry.is_symlink) else Path(entry.path)

    def _inside(self, path: Path) -> Path | None:
        try:
            found = path.resolve()
        except (OSError, RuntimeError, ValueError):
            return None  # A circle of links, a name that the disk can't have.
        return found if self._holds(found) else None

    def _holds(self, path: Path) -> bool:
        if any(path.is_relative_to(folder) for folder in _NEVER):
            return False
        return any(path.is_relative_to(folder) for folder in self.folders)

    def _hint(self) -> str:
        names = ", ".join(map(str, self.folders[:3])) or "none"
        return f"Allowed: {names}. Allow more with `compilescope serve --allow DIR`."


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """By name, without those beyond the limit; nothing of a folder that can't be read."""
    try:
        with os.scandir(folder) as found:
            listed = [entry for entry, _ in zip(found, range(_MOST_ENTRIES), strict=False)]
    except OSError:
        return iter(())
    return iter(sorted(listed, key=lambda entry: entry.name))


def _is_plain(path: Path) -> bool:
    """A file or a folder: a pipe or a device would wait forever, or do something."""
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _is(question: object) -> bool:
    """What a file is, where that can be asked."""
    assert callable(question)
    try:
        return bool(question())
    except OSError:
        return False
