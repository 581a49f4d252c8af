"""What a run holds: its own files, repros in its folder, and what was made from it elsewhere."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from compilescope.record.eventfile import LONGEST_LINE, event_files
from compilescope.record.header import FILE_NAME
from compilescope.record.labels import FILE_NAME as LABELS
from compilescope.record.plain_files import open_plain
from compilescope.record.provenance import SEALS

PRODUCTS = "products.jsonl"
"""In the run's folder: a line for each file that was made from the run."""
REPROS = "repros"
"""The folder within the run's for scripts that show what it found."""
_KINDS = {"artifacts": "artifact", REPROS: "repro"}
_PICTURES = (".png", ".svg", ".jpg", ".jpeg")
_MOST_PRODUCTS = 1000
"""Chosen: more than a page lists; anyone may have written the file."""
_MOST_BYTES = 1 << 20
"""Of that file. Chosen: a kilobyte for each of them."""


class RunFile(msgspec.Struct, frozen=True):
    """One file."""

    kind: str
    """`header`, `events`, `labels`, `artifact`, `repro`, `report`, `export`, `picture`, `file`."""
    path: str
    """Within the run's folder, or absolute."""
    bytes: int


class _Product(msgspec.Struct, frozen=True):
    kind: str
    path: str


def note_product(folder: Path, kind: str, path: Path) -> None:
    """Keep in mind that `path` was made from the run. A folder that is read-only forgets it."""
    line = json.dumps({"kind": kind, "path": str(path.absolute())}) + "\n"
    known = {product.path for product in _products(folder)}
    if str(path.absolute()) in known:
        return
    # A link in its place may lead to a file that is no part of the run.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    flags |= getattr(os, "O_NONBLOCK", 0)
    with suppress(OSError), open(os.open(folder / PRODUCTS, flags, 0o644), "ab") as file:
        file.write(line.encode())


def run_files(folder: Path) -> list[RunFile]:
    """In the order of their names; what was made elsewhere and is still there comes last."""
    return [*_inside(folder), *_outside(folder)]


def _inside(folder: Path) -> Iterator[RunFile]:
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            file = Path(root, name)
            path = file.relative_to(folder).as_posix()
            status = _status(file)
            if status is not None and path not in (PRODUCTS, SEALS):
                yield RunFile(_kind(path), path, status)


def _status(file: Path) -> int | None:
    """The size of a plain file; None of all else."""
    try:
        status = os.lstat(file)
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _kind(path: str) -> str:
    top, _, inner = path.partition("/")
    if path == FILE_NAME:
        return "header"
    if path == LABELS:
        return "labels"
    if not inner and top.startswith("events-") and top.endswith(".jsonl"):
        return "events"
    if path.endswith(_PICTURES):
        return "picture"
    return _KINDS.get(top, "file") if inner else "file"


def _outside(folder: Path) -> Iterator[RunFile]:
    seen: set[str] = set()
    for product in [*_products(folder), *_repros(folder)]:
        file = folder / product.path  # An absolute path stays one.
        inside = file.absolute().is_relative_to(folder.absolute())
        size = None if inside or str(file) in seen else _status(file)
        if size is not None:
            seen.add(str(file))
            yield RunFile(product.kind, str(file), size)


def _products(folder: Path) -> list[_Product]:
    try:
        with open_plain(folder / PRODUCTS) as file:
            lines = file.read(_MOST_BYTES).splitlines()[:_MOST_PRODUCTS]
    except OSError:
        return []
    found = []
    for line in lines:
        with suppress(msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
            found.append(msgspec.json.decode(line, type=_Product))
    return found


def _repros(folder: Path) -> list[_Product]:
    """Those that the run's events name; only these lines are read closely."""
    found = []
    for path in event_files(folder):
        with suppress(OSError), open_plain(path) as file:
            while line := file.readline(LONGEST_LINE):
                if b"ReproWritten" in line:
                    found += _named(line)
    return found


def _named(line: bytes) -> list[_Product]:
    try:
        body = json.loads(line).get("body") or {}
        path = body.get("path")
    except (ValueError, AttributeError, RecursionError):
        return []
    return [_Product("repro", path)] if isinstance(path, str) and path else []
