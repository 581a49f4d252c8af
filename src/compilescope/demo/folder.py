"""The folder that a tour runs in: its programs, its runs, everything its commands write."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from compilescope.errors import ToolError

PROGRAMS = Path(__file__).parent / "programs"
_UNFIT = re.compile(r"[^\w.-]|^\.+")
OUTPUT = "output"
"""Where the full output of every command is kept."""


def make_folder(given: Path | None, name: str = "") -> Path:
    """A new or empty folder: a tour never overwrites a file. `name`: of one that is made here;
    lists of runs call a program by its file and its folder."""
    if given is None:
        made = Path(tempfile.mkdtemp(prefix="compilescope-demo-"), _UNFIT.sub("_", name))
        made.mkdir(exist_ok=True)
        return made
    try:
        given.mkdir(parents=True, exist_ok=True)
        if any(given.iterdir()):
            raise ToolError(f"{given} is not empty.", hint="Choose a new or empty folder.")
    except OSError as error:
        raise ToolError(f"Cannot use {given}: {error.strerror}.") from None
    return given.absolute()


def place_programs(folder: Path, names: Iterable[str]) -> None:
    """Copy the bundled programs that are not there yet."""
    for name in names:
        target = folder / name
        if not target.exists():
            write(target, (PROGRAMS / name).read_text(encoding="utf-8"))


def write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ToolError(
            f"Cannot write {path}: {error.strerror}.", hint="Choose another folder with --dir."
        ) from None
