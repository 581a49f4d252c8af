"""What an agent may name: programs and files in allowed folders, runs in the runs folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from compilescope.base.durations import read_duration
from compilescope.base.errors import ToolError
from compilescope.base.folders import Folders
from compilescope.base.objects import names_file

_RUN = re.compile(r"\w[\w-]{0,99}")
_RANKED = re.compile(r"\w[\w-]{0,99}(@\d{1,6})?")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")


@dataclass(frozen=True)
class AllowedProgram:
    """A script, and the folder that it runs in."""

    path: Path
    cwd: Path

    def words(self, arguments: list[str], separator: str = "--") -> list[str]:
        """Of a command line, after its options. `separator`: for commands that would take some of
        the program's arguments for their own."""
        apart = [separator] if separator and arguments else []
        return [str(self.path), *apart, *arguments]


def read_program(folders: Folders, program: str, folder: str) -> AllowedProgram:
    """Raises `ToolError` for what is not allowed, or is no script."""
    if not folder:
        path = folders.check_script(program)
        return AllowedProgram(
            path, next(each for each in folders.folders if path.is_relative_to(each))
        )
    cwd = folders.check_folder(folder)
    return AllowedProgram(folders.check_script(cwd / program), cwd)


def read_function(folders: Folders, text: str, usual: str) -> str:
    """`file.py:function`, in an allowed folder."""
    file, colon, name = text.rpartition(":") if ".py:" in text else (text, "", "")
    path = folders.check_script(file)
    name = name if colon else usual
    if not _NAME.fullmatch(name):
        raise ToolError(f"{name!r} is not the name of a function.")
    return f"{path}:{name}"


def read_backend(folders: Folders, text: str) -> str:
    """The name of a backend, or `file.py:backend`; empty: none was given."""
    if names_file(text):
        return read_function(folders, text, "backend")
    if text and not _NAME.fullmatch(text):
        raise ToolError(f"{text!r} is not the name of a backend.")
    return text


def read_run_name(text: str, *, ranked: bool = False) -> list[str]:
    """A word for a command line; none for the latest run."""
    if text and not (_RANKED if ranked else _RUN).fullmatch(text):
        raise ToolError(f"{text!r} is not the ID of a run.", hint="The resources list the runs.")
    return [text] if text else []


def read_limit(text: str) -> float | None:
    """Seconds; None: no limit."""
    seconds = read_duration(text) if text else None
    if text and seconds is None:
        raise ToolError(f"{text} is not a duration.", hint="Use 90s, 2m or 1h.")
    return seconds
