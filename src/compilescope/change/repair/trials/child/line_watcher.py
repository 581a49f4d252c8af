"""Notes which of some lines a program runs, and whether within a call of a compiled region.

For a program that runs eagerly: what Dynamo compiles, Python does not trace. Each line is written
once, when it first runs, so that a process which is killed has told as well.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_FILE = "lines"
_depth = 0
"""Of calls of compiled regions that are under way."""


@contextlib.contextmanager
def within_region() -> Iterator[None]:
    """What runs in the block runs in a call of a compiled region."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


def watch_lines(folder: Path, wanted: Mapping[str, Iterable[int]]) -> None:
    """From now on, in this process and in those that it forks. By file: the lines."""
    watcher = _LineWatcher(folder, wanted)
    threading.settrace(watcher.call)
    sys.settrace(watcher.call)


def read_lines(folder: Path) -> dict[tuple[str, int], bool]:
    """(file, line) that ran; was it in a region?"""
    found: dict[tuple[str, int], bool] = {}
    with contextlib.suppress(OSError):
        for row in (folder / _FILE).read_text(encoding="utf-8").splitlines():
            where, line, file = row.split(" ", 2)
            found[file, int(line)] = found.get((file, int(line)), False) or where == "in"
    return found


class _LineWatcher:
    def __init__(self, folder: Path, wanted: Mapping[str, Iterable[int]]) -> None:
        self._path = str(folder / _FILE)
        self._wanted = {os.path.realpath(file): (file, set(rows)) for file, rows in wanted.items()}
        self._lines: dict[str, tuple[str, set[int]] | None] = {}
        self._codes: dict[CodeType, bool] = {}
        self._told: set[tuple[str, int, bool]] = set()

    def call(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        known = self._codes.get(code)
        if known is None:
            known = self._codes[code] = self._has_wanted(code)
        return self._line if known else None

    def _has_wanted(self, code: CodeType) -> bool:
        found = self._of(code.co_filename)
        if found is None:
            return False
        return any(line in found[1] for _, _, line in code.co_lines() if line is not None)

    def _of(self, file: str) -> tuple[str, set[int]] | None:
        if file not in self._lines:
            real = os.path.realpath(file) if not file.startswith("<") else file
            self._lines[file] = self._wanted.get(real)
        return self._lines[file]

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            found = self._of(frame.f_code.co_filename)
            if found is not None and frame.f_lineno in found[1]:
                self._tell(found[0], frame.f_lineno, _depth > 0)
        return self._line

    def _tell(self, file: str, line: int, inside: bool) -> None:
        if (file, line, inside) in self._told:
            return
        self._told.add((file, line, inside))
        row = f"{'in' if inside else 'out'} {line} {file}\n".encode("utf-8", "surrogateescape")
        with contextlib.suppress(OSError):
            # In one piece, whatever other processes write.
            stream = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(stream, row)
            finally:
                os.close(stream)
