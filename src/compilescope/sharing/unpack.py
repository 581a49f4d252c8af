"""Unpacks an archive that anyone may have made.

Nothing of it is run or unpickled, and nothing is written outside the folder that is given. Sizes
are counted while reading, whatever the archive says of itself.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from compilescope.digests import blake2b
from compilescope.errors import ToolError
from compilescope.model.artifacts import ARTIFACTS
from compilescope.model.header import FILE_NAME
from compilescope.model.plain_files import open_plain
from compilescope.sharing.archive import MEMBER, Progress

_CHUNK = 1 << 20
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
