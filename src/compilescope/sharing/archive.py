"""A run as one zip file: the same run always gives the same bytes.

Only the files that a run is made of go in, in an order and with dates that never differ. How an
archive is taken in again, from whoever made it, is in `unpack`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from compilescope.errors import ToolError
from compilescope.model.artifacts import ARTIFACTS
from compilescope.model.event import Event, encode
from compilescope.model.eventfile import event_files
from compilescope.model.header import FILE_NAME, read_header, write_header
from compilescope.model.labels import FILE_NAME as LABELS
from compilescope.model.presence import FILE_NAME as PROCESSES
from compilescope.model.run import Run
from compilescope.outputs import output_file
from compilescope.patterns import late

Progress = Callable[[int, int], None]
"""(bytes done, bytes in all)"""

MEMBER = late(
    rf"{re.escape(FILE_NAME)}|{re.escape(LABELS)}|{PROCESSES}|events-\d+(?:\.\d+)?\.jsonl"
    rf"|{ARTIFACTS}/[0-9a-f]{{40}}\.[a-z]{{1,16}}",
    re.ASCII,
)
"""The names of a run's files; nothing else goes into an archive or comes out of one."""

_CHUNK = 1 << 20
"""Bytes that are copied at a time. Chosen: memory stays small however large the run is."""
_SHORT = 64
"""Bytes of a file that is not packed. Chosen: hardly fewer packed."""
_UNREADABLE = b"?\n"
"""A line that is no event. Short: a run may have millions."""
_PROCESS = late(r"(\d+)(?::(\d+))?\.\d+")


class Archived(msgspec.Struct, frozen=True):
    """What an archive holds."""

    files: int
    bytes: int
    """The size of the archive itself."""


def write_archive(folder: Path, target: Path, progress: Progress | None = None) -> Archived:
    """The run in `folder` as the file `target`, which is whole or not there at all."""
    read_header(folder)
    try:
        with output_file(target) as file:
            files = _write(folder, file, progress)
        return Archived(files, target.stat().st_size)
    except OSError as error:
        name = Path(error.filename).name if error.filename else ""
        what = f"read {error.filename}" if MEMBER.search(name) else f"write {target}"
        raise ToolError(f"Cannot {what}: {error.strerror}.") from None


def _write(folder: Path, file: BinaryIO, progress: Progress | None) -> int:
    # A run that goes on writes a text before the event that names it: events are taken first.
    members = [*_members(folder, [FILE_NAME]), *_members(folder, _event_names(folder))]
    members += _members(folder, [each for each in (LABELS, PROCESSES) if (folder / each).exists()])
    members += _members(folder, _artifact_names(folder))
    total, done = sum(size for _, size in members), 0
    import zipfile  # Whoever reads a run needs only the names above.

    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, size in members:
            info = zipfile.ZipInfo(name)  # Without a time: equal runs make equal archives.
            # What packs a file takes longer to set up than a short one takes to read.
            short = size <= _SHORT
            info.compress_type = zipfile.ZIP_STORED if short else zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            big = size >= zipfile.ZIP64_LIMIT // 2
            with (
                open(os.path.join(folder, name), "rb") as source,
                archive.open(info, "w", force_zip64=big) as to,
            ):
                done += _copy(source, to, size)
            if progress is not None:
                progress(done, total)
    return len(members)


def _copy(source: BinaryIO, to: object, size: int) -> int:
    """Up to `size` bytes: what a live run appends meanwhile is left out."""
    left = size
    while left and (chunk := source.read(min(_CHUNK, left))):
        to.write(chunk)  # type: ignore[attr-defined]
        left -= len(chunk)
    return size - left


def _event_names(folder: Path) -> list[str]:
    return [path.name for path in event_files(folder)]


def _artifact_names(folder: Path) -> list[str]:
    try:
        return sorted(f"{ARTIFACTS}/{name}" for name in os.listdir(folder / ARTIFACTS))
    except FileNotFoundError:
        return []


def _members(folder: Path, names: list[str]) -> list[tuple[str, int]]:
    """(name, size) of those that are files of a run. A link may lead anywhere: it stays here."""
    found = []
    for name in names:
        status = os.lstat(os.path.join(folder, name))
        if MEMBER.fullmatch(name) and stat.S_ISREG(status.st_mode):
            found.append((name, status.st_size))
    return found


def write_run(folder: Path, run: Run) -> None:
    """The header and the events of `run` as files; its artifacts are there already.

    Lines that could not be read stay lines that cannot be read: they are counted.
    """
    events: dict[str, list[Event]] = {}
    for event in run.events:
        process = _PROCESS.fullmatch(event.id)
        rank, pid = process.groups() if process else ("0", None)
        name = f"events-{rank}.{pid}.jsonl" if pid else f"events-{rank}.jsonl"
        events.setdefault(name, []).append(event)
    if run.unread or run.torn:
        events.setdefault("events-0.jsonl", [])
    try:
        for name, some in events.items():
            with open(folder / name, "wb") as file:
                file.writelines(encode(event) + b"\n" for event in some)
                if name == "events-0.jsonl":
                    file.write(_UNREADABLE * run.unread)
                    if run.torn and file.tell():
                        file.truncate(file.tell() - 1)
        write_header(folder, run.header)
    except OSError as error:
        raise ToolError(f"Cannot write the run in {folder}: {error.strerror}.") from None
