"""The folder that a tour runs in: its programs, its runs, everything its commands write."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from compilescope.errors import ToolError

PROGRAMS = Path(__file__).parent / "programs"
OUTPUT = "output"
"""Where the full output of every command is kept."""


def make_folder(given: Path | None) -> Path:
    """A new or empty folder: a tour never overwrites a file."""
    if given is None:
        return Path(tempfile.mkdtemp(prefix="compilescope-demo-"))
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
