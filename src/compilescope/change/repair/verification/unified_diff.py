"""Reads a unified diff and applies it: every hunk where its lines stand, or nothing at all.

As git writes them or `diff -u` does: with prefixes or without, several files, new ones and deleted
ones. Lines are compared without their line ends, so that one of Windows and one of Unix are alike.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from compilescope.base.errors import ToolError
from compilescope.base.patterns import late
from compilescope.change.fixes.diffs import split_lines

_HUNK = late(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = late(r"\\([0-7]{3}|.)")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_NOWHERE = "/dev/null"
_SHOWN = 60
"""Letters of a line. Chosen: it is one clause of a sentence."""


@dataclass
class DiffHunk:
    """Some lines of a file, and those that take their place."""

    number: int
    """In its file, from 1."""
    head: str
    start: int
    """The first line of the old file, from 1; of an insertion the line that it follows."""
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


@dataclass
class FilePatch:
    """What a diff says of one file."""

    old: str | None
    """Its name before; None: there is none yet."""
    new: str | None
    """Its name after; None: it is deleted."""
    hunks: list[DiffHunk] = field(default_factory=list)
    is_binary: bool = False

    @property
    def name(self) -> str:
        return self.new or self.old or ""


def read_diff(data: bytes, shown: str) -> list[FilePatch]:
    """`shown` names it in errors."""
    if not data.strip():
        raise ToolError(f"{shown} is empty: there is no change to verify.")
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").replace("\r\n", "\n")
    found = _Reader(split_lines(text), shown).files()
    if not found:
        raise ToolError(
            f"{shown} holds no unified diff.", hint="`git diff` and `diff -u` write them."
        )
    return found


class _Reader:
    """Walks through the lines once."""

    def __init__(self, lines: list[str], shown: str) -> None:
        self._lines = lines
        self._shown = shown
        self._at = 0

    def files(self) -> list[FilePatch]:
        found: list[FilePatch] = []
        begun: FilePatch | None = None
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip("\n")
            if line.startswith("diff --git "):
                begun = FilePatch(*_names_of_git(line))
                found.append(begun)
            elif begun is not None and self._is_told(begun, line):
                pass
            elif line.startswith("--- ") and self._next().startswith("+++ "):
                old, new = _name(line[4:]), _name(self._next().rstrip("\n")[4:])
                if begun is None or begun.hunks or not (begun.old == old or begun.new == new):
                    begun = FilePatch(old, new)
                    found.append(begun)
                begun.old, begun.new = old, new
                self._at += 1
            elif line.startswith("@@ ") and begun is not None:
                self._read_hunk(begun)
                continue
            self._at += 1
        return [each for each in found if each.hunks or each.is_binary or each.old != each.new]

    def _is_told(self, file: FilePatch, line: str) -> bool:
        """What git says of a file before its hunks."""
        if line.startswith("new file mode"):
            file.old = None
        elif line.startswith("deleted file mode"):
            file.new = None
        elif line.startswith("GIT binary patch") or (
            line.startswith("Binary files ") and line.endswith(" differ")
        ):
            file.is_binary = True
        else:
            return False
        return True

    def _next(self) -> str:
        return self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""

    def _read_hunk(self, file: FilePatch) -> None:
        head = self._lines[self._at].rstrip("\n")
        match = _HUNK.match(head)
        if match is None:
            raise ToolError(
                f"{self._shown} is no valid unified diff: its line {head!r} is damaged."
            )
        start, olds, _, news = (int(each) if each is not None else 1 for each in match.groups())
        hunk = DiffHunk(len(file.hunks) + 1, match[0], start)
        self._at += 1
        while len(hunk.old) < olds or len(hunk.new) < news or self._is_marker():
            line = self._lines[self._at] if self._at < len(self._lines) else ""
            if self._is_marker():
                self._drop_line_end(hunk)
            elif line[:1] in (" ", "-", "+", "\n"):
                body = line if line == "\n" else line[1:]
                hunk.old += [body] if line[:1] != "+" else []
                hunk.new += [body] if line[:1] != "-" else []
            else:
                raise ToolError(
                    f"{self._shown} is incomplete: hunk {hunk.number} of {file.name} has fewer "
                    "lines than it says."
                )
            self._at += 1
        if len(hunk.old) != olds or len(hunk.new) != news or self._has_more():
            raise ToolError(
                f"{self._shown} is damaged: hunk {hunk.number} of {file.name} has other lines than "
                "it says."
            )
        file.hunks.append(hunk)

    def _has_more(self) -> bool:
        """Lines of a hunk beyond those that it says; `-- ` is how git signs a mail."""
        line = self._lines[self._at] if self._at < len(self._lines) else ""
        is_head = line.startswith("--- ") and self._next().startswith("+++ ")
        return line[:1] in (" ", "+", "-") and not is_head and line.rstrip("\n") != "-- "

    def _is_marker(self) -> bool:
        return self._at < len(self._lines) and self._lines[self._at].startswith("\\ ")

    def _drop_line_end(self, hunk: DiffHunk) -> None:
        """Of the line before: it is the last of its file."""
        kind = self._lines[self._at - 1][:1]
        for side, other in ((hunk.old, "+"), (hunk.new, "-")):
            if kind != other and side:
                side[-1] = side[-1].rstrip("\n")


def _names_of_git(line: str) -> tuple[str | None, str | None]:
    """Of `diff --git a/x b/x`, for files without hunks; with hunks the names stand there again."""
    words = line.removeprefix("diff --git ")
    quoted = re.findall(r'"(?:[^"\\]|\\.)*"', words)
    if len(quoted) == 2:
        return _name(quoted[0]), _name(quoted[1])
    half = (len(words) - 1) // 2  # Both are alike, but for their prefixes.
    if words[half : half + 1] == " ":
        return _name(words[:half]), _name(words[half + 1 :])
    old, _, new = words.partition(" ")
    return _name(old), _name(new)


def _name(text: str) -> str | None:
    """As it stands after `---`: perhaps quoted, or with a date after a tab."""
    if text.startswith('"'):
        inner = text[1 : text.rfind('"')]
        return (
            _ESCAPE.sub(_unescaped, inner).encode("latin-1", "replace").decode("utf-8", "replace")
        )
    name = text.partition("\t")[0].rstrip()
    return None if name == _NOWHERE else name


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if len(code) == 3 else _LETTERS.get(code, code)


def apply_hunks(text: str, patch: FilePatch, shown: str) -> str:
    """The new text. Raises `ToolError` where a hunk's lines are not there."""
    lines = split_lines(text)
    made: list[str] = []
    done = 0
    for hunk in patch.hunks:
        at = _place(lines, hunk, done)
        if at is None:
            raise ToolError(_misfit(lines, hunk, shown))
        made += [*lines[done:at], *hunk.new]
        done = at + len(hunk.old)
    return "".join([*made, *lines[done:]])


def _place(lines: Sequence[str], hunk: DiffHunk, done: int) -> int | None:
    """Where its old lines stand: at the line that it names, or in one other place alone."""
    stated = hunk.start - 1 if hunk.old else hunk.start
    if stated >= done and _stands(lines, hunk, stated):
        return stated
    if not hunk.old:
        return None
    places = list(_places(lines, hunk, done))
    return places[0] if len(places) == 1 else None


def _places(lines: Sequence[str], hunk: DiffHunk, done: int) -> Iterator[int]:
    for at in range(done, len(lines) - len(hunk.old) + 1):
        if _stands(lines, hunk, at):
            yield at


def _stands(lines: Sequence[str], hunk: DiffHunk, at: int) -> bool:
    return at <= len(lines) and list(lines[at : at + len(hunk.old)]) == hunk.old


def _misfit(lines: Sequence[str], hunk: DiffHunk, shown: str) -> str:
    words = f"Hunk {hunk.number} of the patch ({hunk.head}) does not apply to {shown}"
    if len(list(_places(lines, hunk, 0))) > 1:
        return f"{words}: its lines stand in several places."
    for number, wanted in enumerate(hunk.old, max(hunk.start, 1)):
        found = lines[number - 1] if number <= len(lines) else None
        if found != wanted:
            is_now = "missing" if found is None else repr(found.strip()[:_SHOWN])
            return f"{words}: line {number} is {is_now}, not {wanted.strip()[:_SHOWN]!r}."
    return f"{words}: it overlaps the one before it."


def stripped(name: str, levels: int) -> str:
    """As `patch -p` does it."""
    return "/".join(name.split("/")[levels:])


def check_inside(path: str, folder: str, shown: str) -> None:
    """A diff is somebody's text: it names no file outside of the program's folder."""
    real, inside = os.path.realpath(path), os.path.realpath(folder)
    if real != inside and not real.startswith(os.path.join(inside, "")):
        raise ToolError(f"The patch changes {shown}, which is outside of {folder}.")
