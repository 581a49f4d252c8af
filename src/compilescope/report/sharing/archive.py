"""A run as one zip file, made and taken in again.

The same run always gives the same bytes: only the files that a run is made of go in, in an order
and with dates that never differ. What comes in may be from anyone, so it is held to limits, and is
in the home folder whole, by a rename, or not at all.
"""

from __future__ import annotations

import errno
import filecmp
import os
import re
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.outputs import output_file
from compilescope.base.patterns import late
from compilescope.record.artifacts import ARTIFACTS
from compilescope.record.event import Event, encode
from compilescope.record.eventfile import EventReader, event_files
from compilescope.record.header import FILE_NAME, RunHeader, read_header, write_header
from compilescope.record.home import list_runs, make_home, note_made
from compilescope.record.labels import FILE_NAME as LABELS
from compilescope.record.plain_files import open_plain
from compilescope.record.presence import FILE_NAME as PROCESSES
from compilescope.record.run import Run, is_live

"""Bytes at a time, as an archive is written."""
_ENTRY = b"PK\x01\x02"
_LONGEST_NAME = 80
"""Letters in a message. Chosen: a line."""
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""What the standard library raises on a damaged archive."""
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


class ArchiveSize(msgspec.Struct, frozen=True):
    """What an archive holds."""

    files: int
    bytes: int
    """The size of the archive itself."""


def write_archive(folder: Path, target: Path, progress: Progress | None = None) -> ArchiveSize:
    """The run in `folder` as the file `target`, which is whole or not there at all."""
    read_header(folder)
    try:
        with output_file(target) as file:
            files = _write(folder, file, progress)
        return ArchiveSize(files, target.stat().st_size)
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


# Unpacks an archive that anyone may have made.
#
# Nothing of it is run or unpickled, and nothing is written outside the folder that is given. Sizes
# are counted while reading, whatever the archive says of itself.


class UnpackLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much an archive may hold."""

    archive_bytes: int = 2 << 30
    members: int = 100_000
    member_bytes: int = 2 << 30
    total_bytes: int = 8 << 30
    ratio: int = 100
    """How many times larger than the archive its files may become together..."""
    free_bytes: int = 16 << 20
    """...beyond this. Events of a real run pack to a fiftieth at most."""


class PackedRun:
    """An archive that was opened and whose list of files was found in order."""

    def __init__(self, packed: zipfile.ZipFile, archive: Path, limits: UnpackLimits) -> None:
        self._packed = packed
        self._archive = archive
        self._limits = limits
        self._members = self._checked()
        self._room = self._checked_room()

    @property
    def files(self) -> int:
        return len(self._members)

    def _checked(self) -> list[zipfile.ZipInfo]:
        members = [m for m in self._packed.infolist() if m.orig_filename != f"{ARTIFACTS}/"]
        seen: set[str] = set()
        for info in members:
            name = info.orig_filename
            shown = repr(name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…")
            if not MEMBER.fullmatch(name) or info.filename != name:
                raise ToolError(
                    f"{self._archive} is not an exported run: it has an unexpected file, {shown}."
                )
            if name in seen:
                raise self._refusal(f"it contains {shown} twice")
            seen.add(name)
            self._check_member(info, shown)
        if FILE_NAME not in seen:
            raise ToolError(f"{self._archive} is not an exported run: it has no {FILE_NAME}.")
        return members

    def _check_member(self, info: zipfile.ZipInfo, shown: str) -> None:
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            raise self._refusal(f"{shown} is a link or a device, not a file")
        if info.flag_bits & 0x1:
            raise self._refusal(f"{shown} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self._refusal(f"{shown} uses an unsupported compression method")

    def _checked_room(self) -> int:
        """Bytes that all files may have; an archive that says it has more is not unpacked."""
        size = self._archive.stat().st_size
        room = min(self._limits.total_bytes, self._limits.free_bytes + size * self._limits.ratio)
        if sum(info.file_size for info in self._members) > room:
            raise self._refusal("it unpacks to too much data")
        return room

    def _refusal(self, why: str) -> ToolError:
        return ToolError(f"{self._archive} was rejected: {why}.")

    def extract(self, folder: Path, progress: Progress | None = None) -> int:
        """Write the files into `folder`; their bytes are counted."""
        total, done = sum(info.file_size for info in self._members), 0
        for info in self._members:
            try:
                done += self._extract(info, folder / info.filename, done)
            except (*_DAMAGE, OSError) as error:
                # A place in the archive that does not exist; other errors are the disk's.
                if isinstance(error, OSError) and error.errno != errno.EINVAL:
                    raise
                raise ToolError(
                    f"{self._archive} is damaged: {info.filename} cannot be unpacked."
                ) from None
            if progress is not None:
                progress(done, max(total, done))
        return done

    def _extract(self, info: zipfile.ZipInfo, target: Path, done: int) -> int:
        most = min(self._limits.member_bytes, self._room - done)
        size, digest = 0, blake2b(digest_size=20)
        with self._packed.open(info) as source, target.open("xb") as file:
            while chunk := source.read(_CHUNK):
                size += len(chunk)
                if size > most:
                    raise self._refusal(f"{info.filename} unpacks to too much data")
                digest.update(chunk)
                file.write(chunk)
        if target.parent.name == ARTIFACTS and digest.hexdigest() != target.stem:
            raise ToolError(
                f"{self._archive} is damaged: the content of {info.filename} does not match "
                "its name."
            )
        return size


@contextmanager
def opened(archive: Path, limits: UnpackLimits) -> Iterator[PackedRun]:
    """The archive. Every problem with it, and with the disk, is one sentence."""
    try:
        with open_plain(archive) as file:
            _check_size(file, archive, limits)
            try:
                packed = zipfile.ZipFile(file)
            except (*_DAMAGE, OSError):
                raise ToolError(f"{archive} is not a zip file, or it is damaged.") from None
            with packed:
                yield PackedRun(packed, archive, limits)
    except OSError as error:
        raise _sentence(error, archive) from None


def _sentence(error: OSError, archive: Path) -> ToolError:
    own = error.filename is None or str(error.filename) == str(archive)
    if own and isinstance(error, FileNotFoundError):
        return ToolError(f"There is no file {archive}.")
    if own and archive.is_dir():
        return ToolError(f"{archive} is a folder, not an exported run.")
    return ToolError(f"Cannot import {archive}: {error.strerror or error}.")


def _check_size(file: BinaryIO, archive: Path, limits: UnpackLimits) -> None:
    """Before anything is parsed: the list of an archive's files is read into memory as a whole."""
    size = os.fstat(file.fileno()).st_size
    if size == 0:
        raise ToolError(f"{archive} is empty.")
    if size > limits.archive_bytes:
        most = limits.archive_bytes // 1_000_000
        raise ToolError(f"{archive} was rejected: it is larger than {most} MB.")
    entries = 0
    while chunk := file.read(_CHUNK):
        entries += chunk.count(_ENTRY)
        if entries > limits.members:
            raise ToolError(f"{archive} was rejected: it has more than {limits.members} files.")
    file.seek(0)


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
