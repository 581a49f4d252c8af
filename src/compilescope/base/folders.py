"""The folders that a browser or an agent may name files in, nothing outside of them.

A path comes from a request. It is followed to where it really leads (links, `..`,
`/proc/self/root`) and only then compared with the folders that the user allowed.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from compilescope.base.errors import ToolError

_MOST_CHARACTERS = 4096
"""Of a path: Linux takes no longer one."""
_MOST_ENTRIES = 2000
"""Of one folder: the rest is not listed. Chosen: more than people look through."""
_SEARCH_S = 1.0
"""Chosen: a form must open; a path can be typed, too."""
_NEVER = tuple(map(Path, ("/proc", "/sys", "/dev")))
"""No programs there, but ways to everything else."""
_SKIPPED = ("__pycache__", "site-packages", "dist-packages", "node_modules")


@dataclass(frozen=True)
class FolderListing:
    """What a folder offers to choose from."""

    folder: Path
    parent: Path | None
    """None: the folders above are not allowed."""
    folders: tuple[Path, ...]
    scripts: tuple[Path, ...]
    complete: bool
    """False: it holds more entries than are listed."""


class Folders:
    """The allowed folders. An empty list allows nothing."""

    def __init__(self, folders: Iterable[Path], command: str = "serve") -> None:
        """`command`: what the user allows them with."""
        self._command = command
        self.folders = tuple(dict.fromkeys(folder.resolve() for folder in folders))

    def check(self, path: str | Path) -> Path:
        """The file or folder that `path` leads to, absolute and without links.

        A relative path is looked for in each of the allowed folders."""
        text = str(path)
        if not text.strip() or "\0" in text or len(text) > _MOST_CHARACTERS:
            raise ToolError("This is not a valid path.")
        tried = [Path(text)] if Path(text).is_absolute() else [f / text for f in self.folders]
        inside = [found for one in tried if (found := self._inside(one)) is not None]
        if not inside:
            raise ToolError(f"{text} is outside the folders you allowed.", hint=self._hint())
        for found in inside:
            if _is_plain(found):
                return found
        raise ToolError(f"There is no file or folder {text}.")

    def check_script(self, path: str | Path) -> Path:
        """A Python file that can be run."""
        found = self.check(path)
        if found.suffix != ".py" or not found.is_file():
            raise ToolError(f"{path} is not a Python file.")
        if not os.access(found, os.R_OK):
            raise ToolError(f"{path} can't be read.")
        return found

    def check_folder(self, path: str | Path) -> Path:
        found = self.check(path)
        if not found.is_dir():
            raise ToolError(f"{path} is not a folder.")
        return found

    def browse(self, folder: str | Path) -> FolderListing:
        """The folders and Python files right in it."""
        found = self.check_folder(folder)
        entries = list(_entries(found))
        parent = found.parent if self._holds(found.parent) and found.parent != found else None
        return FolderListing(
            found,
            parent,
            tuple(path for path in map(self._folder_at, entries) if path is not None),
            tuple(path for path in map(self._script_at, entries) if path is not None),
            complete=len(entries) < _MOST_ENTRIES,
        )

    def scripts(self, limit: int = 500) -> list[Path]:
        """Python files below the allowed folders, those that lie nearest first. A search that takes
        long ends early: a path can be typed, too."""
        found: dict[Path, None] = {}
        seen = set(self.folders)
        waiting = deque(self.folders)
        end = time.monotonic() + _SEARCH_S
        while waiting and len(found) < limit and time.monotonic() < end:
            for entry in _entries(waiting.popleft()):
                if (script := self._script_at(entry)) is not None:
                    found.setdefault(script)
                elif (below := self._folder_at(entry)) is not None and below not in seen:
                    seen.add(below)
                    waiting.append(below)
        return list(found)[:limit]

    def _folder_at(self, entry: os.DirEntry[str]) -> Path | None:
        path = self._shown(entry)
        if path is None or not _is(entry.is_dir) or path.name in _SKIPPED:
            return None
        return None if _is((path / "pyvenv.cfg").is_file) else path

    def _script_at(self, entry: os.DirEntry[str]) -> Path | None:
        path = self._shown(entry)
        return path if path is not None and path.suffix == ".py" and _is(entry.is_file) else None

    def _shown(self, entry: os.DirEntry[str]) -> Path | None:
        """Where it leads, if that may be shown."""
        if entry.name.startswith(".") or not entry.name.isprintable():
            return None
        return self._inside(Path(entry.path)) if _is(entry.is_symlink) else Path(entry.path)

    def _inside(self, path: Path) -> Path | None:
        try:
            found = path.resolve()
        except (OSError, RuntimeError, ValueError):
            return None  # A circle of links, a name that the disk can't have.
        return found if self._holds(found) else None

    def _holds(self, path: Path) -> bool:
        if any(path.is_relative_to(folder) for folder in _NEVER):
            return False
        return any(path.is_relative_to(folder) for folder in self.folders)

    def _hint(self) -> str:
        names = ", ".join(map(str, self.folders[:3])) or "none"
        return f"Allowed: {names}. Allow more with `compilescope {self._command} --allow DIR`."


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """By name, without those beyond the limit; nothing of a folder that can't be read."""
    try:
        with os.scandir(folder) as found:
            listed = [entry for entry, _ in zip(found, range(_MOST_ENTRIES), strict=False)]
    except OSError:
        return iter(())
    return iter(sorted(listed, key=lambda entry: entry.name))


def _is_plain(path: Path) -> bool:
    """A file or a folder: a pipe or a device would wait forever, or do something."""
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _is(question: object) -> bool:
    """What a file is, where that can be asked."""
    assert callable(question)
    try:
        return bool(question())
    except OSError:
        return False
