"""The program's files, where they are at hand: in folders that a user names, or at a log's paths.

A log may come from anywhere and name anything: a device or a pipe is never opened. A file is taken
for the program's only if it agrees with what the log shows of it: the text of its lines, else the
functions that they are in. Within a folder that the user named, a file may also be taken on the
user's word.
"""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from compilescope.record.plain_files import read_source_text
from compilescope.record.python_text import parse_python
from compilescope.record.stack import Frame

# Chosen: a bound for memory and time: files and lines that a log names, and entries of the folders
# in which they are looked for.
_MOST_FILES = 2000
_MOST_LINES = 200
_MOST_ENTRIES = 50_000
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "dist-packages"})
_SHOWN = 60
"""Letters of a line in a message. Chosen: it stays one line."""


class Checked(msgspec.Struct, frozen=True):
    """A file at hand, held against what the log shows of it."""

    file: str
    """As the log calls it."""
    here: str
    text: str = ""
    agrees: int = 0
    """Lines that were compared and agree; 0: nothing in the log could be compared."""
    problem: str = ""
    """How it differs; its text is then another program's."""


class SourceFiles:
    """What the log shows of each file, and what is here of it."""

    def __init__(self, folders: tuple[str, ...] = ()) -> None:
        self._folders = folders
        self._shown: dict[str, dict[int, tuple[str, str]]] = {}
        self._by_name: dict[str, list[str]] | None = None

    def take(self, frame: Frame) -> None:
        if frame.origin not in ("user", "library") or frame.file.startswith("<"):
            return
        lines = self._shown.get(frame.file)
        if lines is None:
            if len(self._shown) >= _MOST_FILES:
                return
            lines = self._shown[frame.file] = {}
        before = lines.get(frame.line)
        if before is None and len(lines) >= _MOST_LINES:
            return
        if before is None or (frame.source.strip() and not before[0]):
            lines[frame.line] = (frame.source.strip(), frame.function)

    def found(self) -> Iterator[Checked]:
        for file, lines in self._shown.items():
            tried = [_compared(file, here, lines) for here in self._candidates(file)]
            best = next((each for each in tried if not each.problem and each.agrees), None)
            best = best or next((each for each in tried if not each.problem), None)
            best = best or next(iter(tried), None)
            if best is None:
                continue
            given = any(Path(best.here).is_relative_to(folder) for folder in self._folders)
            # Another program's file at the same path is no news; in a folder that was named it is.
            if given or (best.agrees and not best.problem):
                yield best

    def _candidates(self, file: str) -> list[str]:
        """Most alike first."""
        parts = [part for part in re.split(r"[/\\]", file) if part not in ("", ".", "..")]
        names = self._files_by_name().get(parts[-1], []) if parts else []
        alike = sorted(names, key=lambda here: (-_common_end(here, parts), len(here), here))
        return [*alike, file] if os.path.isabs(file) else alike

    def _files_by_name(self) -> dict[str, list[str]]:
        if self._by_name is None:
            self._by_name = {}
            entries = 0
            for folder in self._folders:
                for root, folders, files in os.walk(folder):
                    folders[:] = sorted(
                        f for f in folders if f not in _SKIPPED and not f.startswith(".")
                    )
                    entries += len(folders) + len(files)
                    if entries > _MOST_ENTRIES:
                        break
                    for name in files:
                        if name.endswith(".py"):
                            self._by_name.setdefault(name, []).append(os.path.join(root, name))
        return self._by_name


def _common_end(here: str, parts: list[str]) -> int:
    own = here.replace("\\", "/").split("/")
    count = 0
    for one, other in zip(reversed(own), reversed(parts), strict=False):
        if one != other:
            break
        count += 1
    return count


def _compared(file: str, here: str, lines: dict[int, tuple[str, str]]) -> Checked:
    own = lines_here(here)
    if not own:
        return Checked(file, here, problem="it cannot be read")
    functions = _functions(_text_here(here))
    agrees = 0
    for number, (source, function) in sorted(lines.items()):
        if number > len(own):
            many = f"{len(own)} line" + ("" if len(own) == 1 else "s")
            return Checked(file, here, problem=f"the log names line {number}, and it has {many}")
        text = line_here(here, number).strip()
        if source and text != source:
            problem = f"line {number} is `{_cut(text)}`, in the log `{_cut(source)}`"
            return Checked(file, here, problem=problem)
        if not source and _is_named(function) and function not in functions.get(number, ()):
            return Checked(file, here, problem=f"line {number} is not in `{function}`")
        agrees += bool(source) or _is_named(function)
    return Checked(file, here, _text_here(here), agrees)


def _is_named(function: str) -> bool:
    return bool(function) and not function.startswith("<")


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _functions(text: str) -> dict[int, set[str]]:
    """Line -> the functions and classes around it."""
    try:
        tree = parse_python(text)
    except SyntaxError:
        return {}
    found: dict[int, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            for line in range(first, (node.end_lineno or node.lineno) + 1):
                found.setdefault(line, set()).add(node.name)
    return found


def line_here(file: str, number: int) -> str:
    """The line as it is here, with its indentation; empty where there is none."""
    lines = _lines(file)
    return lines[number - 1] if 0 < number <= len(lines) else ""


def lines_here(file: str) -> tuple[str, ...]:
    """None where there is no such file, or it is none of text."""
    return _lines(file)


def _text_here(file: str) -> str:
    return "\n".join((*_lines(file), ""))


@functools.lru_cache(maxsize=256)
def _lines(file: str) -> tuple[str, ...]:
    try:
        return tuple(read_source_text(file).split("\n")[:-1])
    except (OSError, ValueError, SyntaxError, UnicodeError):
        return ()
