"""The files of a program: the one that it begins in, and, of a log from another machine, where they
are on this one.

A file counts as found only if the line that the log shows is still in its place.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path, PurePosixPath, PureWindowsPath

import msgspec

from compilescope.base.patterns import late
from compilescope.record.bodies import LogRead, SourceChecked
from compilescope.record.plain_files import read_source_text
from compilescope.record.run import Run
from compilescope.record.stack import origin_of


def main_file_of(command: Sequence[str], cwd: str) -> str:
    """The absolute path; empty where the program has no file of its own. `command` is as the user
    typed it: a script or `-m MODULE` with arguments, `-c CODE`, or a runner such as pytest."""
    if not command or not cwd:
        return ""
    first, *rest = command
    if first == "-m":
        return _module_file(rest[0], cwd) if rest else ""
    if first == "torchrun":
        first = next((word for word in rest if word.endswith(".py")), "")
    path = os.path.join(cwd, first)
    if os.path.isdir(path):
        path = os.path.join(path, "__main__.py")
    return os.path.normpath(path) if first.endswith(".py") or os.path.isfile(path) else ""


def _module_file(name: str, cwd: str) -> str:
    """Found without importing anything."""
    path: list[str] | None = [cwd]
    spec = None
    for number, part in enumerate(name.split(".")):
        spec = PathFinder.find_spec(part, path) or (
            PathFinder.find_spec(part) if not number else None
        )
        if spec is None:
            return ""
        path = list(spec.submodule_search_locations or ())
    if path:
        inner = PathFinder.find_spec("__main__", path)
        spec = inner or spec
    return spec.origin or "" if spec is not None else ""


_PACKAGES = late(r"[/\\](?:site|dist)-packages[/\\](.+)", re.DOTALL)
_MODULE = "<module>"


class LogFiles(msgspec.Struct, frozen=True):
    """Finds the files that a log names on this machine."""

    main: str = ""
    """The absolute path of the script that wrote the log; empty where it is not known."""
    root: str = ""
    """The folder that the log's program was in, on its machine."""
    folders: tuple[str, ...] = ()
    """Where its source may be."""

    def find(self, file: str, line: int, source: str) -> str | None:
        """The file here; None where there is none with that very line."""
        return next(self.all_of(file, line, source), None)

    def all_of(self, file: str, line: int, source: str) -> Iterator[str]:
        """Those that it may be, the likeliest first."""
        for path in dict.fromkeys(self._candidates(file)):
            lines = _lines(path)
            if 0 < line <= len(lines):
                text = lines[line - 1].strip()
                if text == source.strip() or not source.strip():
                    yield path

    def has_another(self, file: str, line: int, source: str) -> bool:
        """Do the folders hold a file in its place, another version or a damaged one?"""
        in_folders = [
            path
            for path in self._candidates(file)
            if any(Path(path).is_relative_to(folder) for folder in self.folders)
        ]
        found = set(self.all_of(file, line, source))
        return any(os.path.isfile(path) for path in in_folders) and not found & set(in_folders)

    def _candidates(self, file: str) -> Iterator[str]:
        name = _parts(file)[-1]
        if self.main and os.path.basename(self.main) == name:
            yield self.main
        yield file
        package = _PACKAGES.search(file)
        if package:
            for folder in sys.path:
                yield os.path.join(folder or os.getcwd(), *_parts(package[1]))
        beside = (os.path.dirname(self.main),) if self.main else ()
        for folder in (*self.folders, *beside):
            if self.root and file.startswith(self.root):
                yield os.path.join(folder, *_parts(file[len(self.root) :].lstrip("/\\")))
            parts = _parts(file)
            for start in range(1, len(parts)):
                yield os.path.join(folder, *parts[start:])


def main_of_log(run: Run, folders: Sequence[str] = (), *, only_there: bool = False) -> str:
    """The script that wrote the log, if it is at hand: the outermost file of a stack. `only_there`:
    in the folders, and not where a log of another machine says; a file that differs from the log is
    another program."""
    differs = {body.here for _, body in run.of(SourceChecked) if body.problem}
    for event in run.events:
        outer = event.stack[0] if event.stack else None
        if outer is None or outer.function != _MODULE or origin_of(outer.file) != "user":
            continue
        here = LogFiles(root=run.header.root, folders=tuple(folders))
        for found in here.all_of(outer.file, outer.line, outer.source):
            there = any(Path(found).is_relative_to(folder) for folder in folders)
            if not only_there or (there and found not in differs):
                return os.path.abspath(found)
    return ""


def arguments_of_log(run: Run, main: str) -> tuple[str, ...]:
    """What the script was started with, where the log shows the command."""
    for _, body in run.of(LogRead):
        try:
            words = shlex.split(body.command)
        except ValueError:
            continue
        names = [_parts(word)[-1] for word in words]
        if os.path.basename(main) in names:
            return tuple(words[names.index(os.path.basename(main)) + 1 :])
    return ()


def _parts(file: str) -> tuple[str, ...]:
    path = PureWindowsPath(file) if "\\" in file and "/" not in file else PurePosixPath(file)
    return tuple(part for part in path.parts if part not in ("..", "")) or ("",)


@cache
def _lines(path: str) -> tuple[str, ...]:
    """As Python counts them; empty where it cannot be read."""
    try:
        return tuple(read_source_text(path).split("\n"))
    except (OSError, SyntaxError, ValueError):
        return ()
