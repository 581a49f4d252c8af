"""Imports an exported run into a home folder: whole, by a rename, or not at all."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from compilescope.errors import ToolError
from compilescope.model.artifacts import ARTIFACTS
from compilescope.model.eventfile import EventReader, event_files
from compilescope.model.header import FILE_NAME, RunHeader, read_header, write_header
from compilescope.model.home import list_runs, make_home, note_made
from compilescope.model.run import is_live
from compilescope.sharing.archive import Progress, UnpackLimits, opened

_CHECKED_BYTES = 100_000_000
"""Of events that are decoded before a run is taken in. Chosen: it bounds the time for an archive
that anyone may have made."""
_RUN_ID = re.compile(r"\w[\w-]{0,99}")


class ImportedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was taken in."""

    run: str
    path: Path
    files: int
    bytes: int
    """Unpacked."""
    already_there: bool = False
    renamed_from: str | None = None
    """The id it came with, where that is another run's here."""
    unread: int = 0
    """Lines of its events that could not be read."""


def import_archive(
    archive: Path,
    home: Path,
    *,
    force: bool = False,
    progress: Progress | None = None,
    limits: UnpackLimits | None = None,
) -> ImportedRun:
    """The run in `archive` as a run in `home`. `force` replaces another run with its id."""
    with opened(archive, limits or UnpackLimits()) as packed, _new_folder(home) as folder:
        size = packed.extract(folder, progress)
        header = _header(folder, archive)
        imported = ImportedRun(
            run=header.run,
            path=home / header.run,
            files=packed.files,
            bytes=size,
            unread=_unread(folder),
        )
        placed = _place(folder, home, header, imported, force=force)
    note_made(placed.path)
    return placed


_OF_A_FILE = 10_000
"""Bytes that are decoded in about the time that it takes to open a file. Chosen, with room."""


@contextmanager
def _new_folder(home: Path) -> Iterator[Path]:
    """A folder in `home` that is gone in the end, unless it was renamed."""
    made_home = not home.exists()
    folder = home / f".import-{os.urandom(6).hex()}"
    try:
        try:
            make_home(home)
            (folder / ARTIFACTS).mkdir(parents=True)
        except OSError as error:
            raise ToolError(
                f"Cannot write the run under {home}: {error.strerror}.",
                hint="Choose another folder with --dir or COMPILESCOPE_DIR.",
            ) from None
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if made_home and [path.name for path in home.glob("*")] == [".gitignore"]:
            with suppress(OSError):  # With the run in it, it stays.
                (home / ".gitignore").unlink()
                home.rmdir()


def _header(folder: Path, archive: Path) -> RunHeader:
    try:
        header = read_header(folder)
    except ToolError as error:
        shown = error.message.replace(str(folder / FILE_NAME), f"{FILE_NAME} in {archive}")
        raise ToolError(shown, error.hint) from None
    if not _RUN_ID.fullmatch(header.run):
        raise ToolError(f"{archive} was rejected: {header.run[:80]!r} is not a run id.")
    return _without_launcher(folder, header)


def _without_launcher(folder: Path, header: RunHeader) -> RunHeader:
    """Whatever process has its launcher's number here, it is another one: nobody may stop that."""
    if header.launcher_pid is None or header.ended_ns is not None:
        return header
    header = msgspec.structs.replace(header, launcher_pid=0)
    write_header(folder, header)
    return header


def _unread(folder: Path) -> int:
    """Events are decoded by the reader that every command uses, the first of each run at least:
    what an archive unpacks to may be a hundred times its size."""
    reader = EventReader()
    left = _CHECKED_BYTES
    for path in event_files(folder):
        if left <= 0:
            break
        for _ in reader.read(path, left):
            pass
        left -= path.stat().st_size + _OF_A_FILE
    return reader.unread


def _place(
    folder: Path, home: Path, header: RunHeader, imported: ImportedRun, *, force: bool
) -> ImportedRun:
    """Rename the folder to what the run is called from now on."""
    for path, other in list_runs(home)[0]:
        if path != folder and _is_same(path, other, folder, header):
            return msgspec.structs.replace(imported, run=path.name, path=path, already_there=True)
    target = home / header.run
    if os.path.lexists(target) and force:
        _remove(target)
    elif os.path.lexists(target):
        label = header.run.partition("-")[2] or "run"
        while os.path.lexists(target):
            target = home / f"{os.urandom(3).hex()}-{label}"
        write_header(folder, msgspec.structs.replace(header, run=target.name))
        imported = msgspec.structs.replace(imported, renamed_from=header.run)
    folder.rename(target)
    return msgspec.structs.replace(imported, run=target.name, path=target)


def _remove(target: Path) -> None:
    try:
        live = is_live(read_header(target))
    except ToolError:
        live = False
    if live:
        raise ToolError(f"The run {target.name} is still in progress and cannot be replaced.")
    # Renamed first: a run is there as a whole, or it is not there.
    old = target.with_name(f".replaced-{os.urandom(6).hex()}")
    target.rename(old)
    if old.is_dir() and not old.is_symlink():
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink()


def _is_same(path: Path, other: RunHeader, folder: Path, header: RunHeader) -> bool:
    """The same run, be it under another id."""
    if msgspec.structs.replace(other, run=header.run) != header:
        return False
    names = [file.name for file in event_files(folder)]
    if names != [file.name for file in event_files(path)]:
        return False
    theirs = path / ARTIFACTS
    held = set(os.listdir(theirs)) if theirs.is_dir() else set()
    if not held.issuperset(os.listdir(folder / ARTIFACTS)):
        return False
    return all(filecmp.cmp(folder / name, path / name, shallow=False) for name in names)
