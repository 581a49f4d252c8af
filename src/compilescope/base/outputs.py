"""Files that are written for a user: each in one step, and never over one that is not ours."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from compilescope.base.errors import ToolError
from compilescope.base.patterns import late

Ours = Callable[[bytes], bool]
"""Does a file that begins like this come from us?"""
_HEAD = 1 << 16
"""Bytes by which a file is known as ours. Chosen: our marks stand near the beginning."""
_FORCE = "Choose another file, or overwrite it with --force."
_MARKS = late(
    rb"<title>[^<]{0,300}compilescope</title>"  # a page
    rb"|\A(?:# )?compilescope (?:[a-z]+ )?[0-9a-f]{6}-\S"  # markdown, plain text
    rb"|\A(?:# )?compilescope report on \d+ runs?\s"  # likewise, of several runs
    rb'|\A\{\s*"schema": \d+,\s*"(?:overview|reports)"'  # JSON
    rb'|"driver": \{\s*"name": "compilescope"'  # SARIF
    rb'|"made_by":"compilescope"'  # a trace
    rb'|<testsuites name="compilescope"'
)


def is_report(head: bytes) -> bool:
    """Is it a report of ours, in any format?"""
    return _MARKS.search(head) is not None


REPRO_MARK = "Exit status: 1 while"


def is_repro(head: bytes) -> bool:
    """Is it a repro script of ours? Every one says what its exit status means."""
    return REPRO_MARK.encode() in head


def check_output(
    path: Path, *, force: bool = False, ours: Ours | None = None, hint: str = _FORCE
) -> None:
    """Say what cannot be written before the work, not after."""
    folder = path.absolute().parent
    if path.is_dir():
        raise ToolError(f"Cannot write {path}: it is a folder.")
    if not folder.is_dir():
        raise ToolError(f"Cannot write {path}: the folder {path.parent} does not exist.")
    if path.exists() and not path.is_file():
        return  # A device or a pipe, in which nothing is kept.
    if not os.access(os.path.dirname(os.path.realpath(path)), os.W_OK):  # Its part is made there.
        raise ToolError(f"Cannot write {path}: the folder {path.parent} is not writable.")
    if not path.exists():
        return
    if not force and not _is_ours(path, ours):
        raise ToolError(f"{path} already exists, and compilescope did not write it.", hint=hint)


def _is_ours(path: Path, ours: Ours | None) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    # Made for us, by `mktemp` or `touch`: there is nothing to lose.
    return not head or (ours is not None and ours(head))


def write_output(path: Path, data: bytes) -> None:
    """Whole or not at all: neither a reader nor Ctrl-C meets half a file."""
    try:
        with output_file(path) as file:
            file.write(data)
    except OSError as error:
        raise ToolError(f"Cannot write {path}: {error.strerror}.") from None


@contextlib.contextmanager
def output_file(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its name at the end, if there was no error. Through a link, the file that
    it leads to is replaced; one that was there keeps its permissions. Raises `OSError`."""
    target = Path(os.path.realpath(path))
    try:
        mode: int | None = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        with target.open("wb") as file:  # /dev/stdout, a pipe: nothing takes its place.
            yield file
        return
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, "Permission denied", str(path))
    with _transient(part_of(target)) as part:
        with part.open("xb") as file:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            yield file
            file.flush()
        part.replace(target)


def _transient(path: Path) -> AbstractContextManager[Path]:
    """As `cleaner.transient`, which takes long to load, where no cleaner can have been started."""
    if "compilescope.base.processes.cleaner" in sys.modules:
        from compilescope.base.processes.cleaner import transient

        return transient(path)
    return _removed(path)


@contextlib.contextmanager
def _removed(path: Path) -> Iterator[Path]:
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def part_of(path: Path) -> Path:
    """Where a file is written before it gets its name; short, whatever that name is."""
    return path.with_name(f".{os.getpid()}-{os.urandom(4).hex()}.part")
