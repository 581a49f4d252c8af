"""The downloaded table that the commands use instead of the installed torch's, and the one before.

In a folder of the user's: each table in a folder named after its content, and `in_use.json`, which
names the one in use and the one before it and is replaced in one step. Torch's own file is only
ever read.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.settings import state_folder
from compilescope.knowledge.registry.table import (
    PLACE,
    Registry,
    load_registry,
    parse_registry,
    table_file,
)

_POINTER = "in_use.json"
_ORIGIN = "origin.json"


class Origin(msgspec.Struct, frozen=True):
    """Where a table came from."""

    url: str
    ref: str
    """The branch or tag of PyTorch's repository, where it is one."""
    day: str
    """When it was downloaded, as YYYY-MM-DD."""
    ids: int

    @property
    def name(self) -> str:
        place = f"PyTorch {self.ref}" if self.ref else self.url.rpartition("/")[2] or self.url
        return f"{place} ({self.day})"


class _InUse(msgspec.Struct, frozen=True):
    now: str | None = None
    """The folder of the table in use; None: the installed torch's."""
    before: str | None = None
    """What it replaced; None: the installed torch's."""


def downloads_folder() -> Path:
    return state_folder() / "registry"


def current_file() -> Path:
    """The table in use: the one downloaded last, else the installed torch's."""
    downloaded = _downloaded(_in_use().now)
    return downloaded if downloaded is not None else table_file()


def current_registry() -> Registry:
    """The table in use. One that can't be read any more says so, and how to do without it."""
    path = _downloaded(_in_use().now)
    if path is None:
        return load_registry()
    try:
        return _load(path)
    except ToolError as error:
        raise ToolError(
            error.message, "Go back with: compilescope registry update --restore"
        ) from None


def keep(data: bytes, origin: Origin) -> Path:
    """Put a table into use that was checked. Whatever fails, the one before stays in use."""
    name = hashlib.sha256(data).hexdigest()[:16]
    folder = downloads_folder()
    was = _in_use()
    place = folder / name
    try:
        place.mkdir(parents=True, exist_ok=True)
        _write(place / PLACE.name, data)
        _write(place / _ORIGIN, msgspec.json.encode(origin))
        if was.now != name:
            _write(folder / _POINTER, msgspec.json.encode(_InUse(name, was.now)))
    except OSError as error:
        raise ToolError(f"Cannot write {place}: {error.strerror}.") from None
    _tidy(folder)
    return place / PLACE.name


def restore() -> Registry | None:
    """Change places with the table before; None: the installed torch's is in use again."""
    was = _in_use()
    if was.now is None and was.before is None:
        raise ToolError(
            "There is no downloaded table to go back from.",
            "Download one with: compilescope registry update --from main",
        )
    if was.before is not None and _downloaded(was.before) is None:
        was = _InUse(was.now, None)
    try:
        _write(downloads_folder() / _POINTER, msgspec.json.encode(_InUse(was.before, was.now)))
    except OSError as error:
        raise ToolError(f"Cannot write {downloads_folder()}: {error.strerror}.") from None
    path = _downloaded(was.before)
    return _load(path) if path is not None else None


def _in_use() -> _InUse:
    try:
        return msgspec.json.decode((downloads_folder() / _POINTER).read_bytes(), type=_InUse)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return _InUse()


def _downloaded(name: str | None) -> Path | None:
    if name is None or not name.isalnum():
        return None
    path = downloads_folder() / name / PLACE.name
    return path if path.is_file() else None


def _load(path: Path) -> Registry:
    try:
        data = path.read_bytes()
        origin = msgspec.json.decode((path.parent / _ORIGIN).read_bytes(), type=Origin)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ToolError(f"The downloaded table {path} could not be read: {error}.") from None
    version = origin.ref[1:] if origin.ref.startswith("v") else None
    table = parse_registry(data, str(path), version)
    return msgspec.structs.replace(table, name=origin.name)


def _tidy(folder: Path) -> None:
    """Of the tables before those two nothing is kept."""
    known = _in_use()
    for place in folder.iterdir():
        if place.is_dir() and place.name not in (known.now, known.before):
            shutil.rmtree(place, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
