"""Kinds of fields that name something on this machine, and nothing outside allowed folders.

Files, runs, and what a file may stand for (a backend, a device).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilescope.dashboard.fields.choices import Option
from compilescope.dashboard.fields.kinds import (
    DOTTED,
    NAME,
    FieldKind,
    FormPlace,
    WrongValue,
    optional,
    split_words,
)
from compilescope.errors import ToolError
from compilescope.model.header import FILE_NAME
from compilescope.objects import names_file

_RUN = re.compile(r"\w[\w-]{0,99}")


@dataclass(frozen=True)
class ScriptFile(FieldKind):
    """A Python file in an allowed folder."""

    control = "script"

    def read(self, given: list[str], place: FormPlace) -> str:
        return str(_checked(place.folders.check_script, given[0]))


@dataclass(frozen=True)
class Build(FieldKind):
    """`file.py:function` in an allowed folder."""

    usual: str = "build"
    control = "script"

    def read(self, given: list[str], place: FormPlace) -> str:
        return _file_and_name(given[0], self.usual, place)


@dataclass(frozen=True)
class Builds(FieldKind):
    """Several of those in one line, with quotes where a path has blanks."""

    usual: str = "build"

    def read(self, given: list[str], place: FormPlace) -> list[str]:
        return [_file_and_name(each, self.usual, place) for each in split_words(given[0])]

    def words(self, option: str, value: Any) -> list[str]:
        return [word for each in value for word in optional(option, each)]


@dataclass(frozen=True)
class Backends(FieldKind):
    """One backend, or several: names, or `file.py:backend`."""

    offered: Callable[[], Sequence[Option]]
    many: bool = False
    files: bool = True

    def read(self, given: list[str], place: FormPlace) -> list[str]:
        found = list(dict.fromkeys(split_words(given[0])))
        if len(found) > 1 and not self.many:
            raise WrongValue("Name one backend.")
        return [self._backend(each, place) for each in found]

    def words(self, option: str, value: Any) -> list[str]:
        return [word for each in value for word in optional(option, each)]

    @property
    def suggestions(self) -> Sequence[Option]:
        return self.offered()

    def _backend(self, text: str, place: FormPlace) -> str:
        if self.files and names_file(text):
            return _file_and_name(text, "backend", place)
        if not NAME.fullmatch(text):
            raise WrongValue(f"{text!r} is not the name of a backend.")
        return text


@dataclass(frozen=True)
class DeviceName(FieldKind):
    """A shipped device, or a TOML file in an allowed folder."""

    offered: Callable[[], Sequence[Option]]

    def read(self, given: list[str], place: FormPlace) -> str:
        names = [option.value for option in self.offered()]
        if given[0] in names:
            return given[0]
        if not given[0].endswith(".toml"):
            raise WrongValue(
                f"There is no such device. Known: {', '.join(names)}, or a .toml file."
            )
        return str(_checked(place.folders.check, given[0]))

    @property
    def suggestions(self) -> Sequence[Option]:
        return self.offered()


@dataclass(frozen=True)
class SweepSource(FieldKind):
    """A folder, a list or a program in an allowed folder."""

    control = "script"

    def read(self, given: list[str], place: FormPlace) -> str:
        return str(_checked(place.folders.check, given[0]))


@dataclass(frozen=True)
class OutFile(FieldKind):
    """A Python file to write, in an allowed folder."""

    def read(self, given: list[str], place: FormPlace) -> str:
        path = Path(given[0])
        if path.suffix != ".py":
            raise WrongValue("Give a file that ends in .py.")
        target = _checked(place.folders.check_folder, str(path.parent)) / path.name
        if target.is_symlink() or target.is_dir():
            raise WrongValue("A file of that name can't be written.")
        return str(target)


@dataclass(frozen=True)
class RunId(FieldKind):
    """A run of this dashboard."""

    control = "run"

    def read(self, given: list[str], place: FormPlace) -> str:
        folder = place.home / given[0]
        if not _RUN.fullmatch(given[0]) or not (folder / FILE_NAME).is_file():
            raise WrongValue(f"There is no run {given[0]!r}.")
        return given[0]


def _checked(check: Callable[[str], Path], text: str) -> Path:
    try:
        found = check(text)
    except ToolError as error:
        raise WrongValue(f"{error.message} {error.hint}".strip()) from None
    if not str(found).isprintable():
        raise WrongValue("Its path has characters that can't be shown.")
    return found


def _file_and_name(text: str, usual: str, place: FormPlace) -> str:
    file, colon, name = text.rpartition(":") if ".py:" in text else (text, "", "")
    path = _checked(place.folders.check_script, file)
    name = name if colon else usual
    if not DOTTED.fullmatch(name):
        raise WrongValue(f"{name!r} is not the name of a function.")
    return f"{path}:{name}"
