"""Fields that several forms have, and the kinds of those that name something on this machine:
nothing outside allowed folders.

Files, runs, and what a file may stand for (a backend, a device).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilescope.apps.dashboard.fields.choices import Option, backends, devices
from compilescope.apps.dashboard.fields.form import Group, Values
from compilescope.apps.dashboard.fields.kinds import (
    DOTTED,
    DURATION,
    NAME,
    Field,
    FieldKind,
    Flag,
    FormPlace,
    NameList,
    Number,
    ProgramArguments,
    WrongValue,
    optional,
    split_words,
)
from compilescope.base.errors import ToolError
from compilescope.base.objects import names_file
from compilescope.record.header import FILE_NAME

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


SCRIPT = Field(
    "script",
    "Script",
    ScriptFile(),
    help="A Python file in one of the folders you allowed.",
    required=True,
    example="train.py",
)
ARGUMENTS = Field(
    "arguments",
    "Arguments",
    ProgramArguments(),
    help="For the script, as you would type them in a shell.",
    example="--epochs 1 --name 'a b'",
)
RUN = Field(
    "run",
    "Recorded run",
    RunId(),
    "--run",
    help="Use the program of this run instead of a script.",
)
COMPILED = Group(
    "What to compile",
    (
        Field(
            "compile_all",
            "Compile the outermost modules",
            Flag(),
            "--compile-all",
            help="For a program that never calls torch.compile.",
        ),
        Field(
            "compile",
            "Compile by name",
            NameList(),
            "--compile",
            help="Module classes or functions: Class, f, Class.method, package.module.f.",
            example="Encoder Decoder.forward",
        ),
        Field(
            "backend",
            "Backend",
            Backends(backends, files=False),
            "--backend",
            help="For what this form compiles; the script chooses its own. [default: inductor]",
        ),
    ),
)
CONSTRAINTS = Field(
    "constraints",
    "Device constraints",
    DeviceName(devices),
    "--constraints",
    help="Also check the graphs against this device: a name, or a .toml file.",
)


def time_limit(of: str, words: str = "", default: str = "") -> Field:
    """For one run of the program, or one of the many processes of a search."""
    kind = Number(above=True)
    return Field("limit", f"Seconds for one {of}", kind, "--limit", help=words, default=default)


def time_budget(shown: str, label: str = "Time for the search") -> Field:
    """For the whole command."""
    words = f"90s, 2m, 1h. {shown} [default: none]"
    return Field("budget", label, DURATION, "--budget", help=words)


def check_compiled(values: Values) -> Iterator[tuple[str, str]]:
    """A backend is for what we compile."""
    if values.get("backend") and not (values.get("compile_all") or values.get("compile")):
        yield "backend", "Choose what to compile with it: the script chooses its own backend."


def check_program(values: Values) -> Iterator[tuple[str, str]]:
    """Of forms that take a script or a run."""
    if not values.get("script") and not values.get("run"):
        yield "script", "Give a script or a recorded run."
    if values.get("script") and values.get("run"):
        yield "run", "Give a script or a recorded run, not both."
    if values.get("run") and values.get("arguments"):
        yield "arguments", "A recorded run has its own arguments."


def what_to_write(script: str, write: str) -> Group:
    """Of commands that change a program: a new script, or the files themselves. Both as help."""
    return Group(
        "What to write",
        (
            Field("fixed", "Write a fixed script", Flag(), "--script", help=script),
            Field(
                "output",
                "File",
                OutFile(),
                "--output",
                help="For the fixed script. [default: SCRIPT_fixed.py]",
            ),
            Field("write", "Change my files", Flag(), "--write", help=write),
            Field(
                "force",
                "Overwrite",
                Flag(),
                "--force",
                help="Write even if git has uncommitted changes or the file exists.",
            ),
        ),
        more=True,
    )


def check_writing(values: Values) -> Iterator[tuple[str, str]]:
    """What belongs together in that group."""
    if values.get("write") and values.get("fixed"):
        yield "fixed", "Change your files or write a new script, not both."
    if values.get("output") and not values.get("fixed"):
        yield "output", "A file needs the choice “Write a fixed script”."
    if values.get("force") and not (values.get("write") or values.get("fixed")):
        yield "force", "No file is written, so there is nothing to overwrite."


def written_script(values: Values) -> Iterator[Path]:
    """The new script of that group."""
    script = values.get("script")
    if values.get("output"):
        yield Path(values["output"])
    elif values.get("fixed") and script:
        yield Path(script).with_name(f"{Path(script).stem}_fixed.py")
