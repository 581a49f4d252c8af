"""A version of a program: the files on disk, with other texts in place of some of them; which lines
are new in it, and what has become of the others.

A value: making one changes nothing on disk. A line that was only indented is the same line.
"""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from compilescope.change.fixes.patch import Patch


@dataclass(frozen=True)
class Version:
    """The program as it is on disk, but for these files and these variables."""

    files: Mapping[str, str] = field(default_factory=dict)
    """By absolute path: the whole text. Modules among them need not be on disk."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the program is started with, beside ours."""
    absent: frozenset[str] = frozenset()
    """Modules on disk, by absolute path, that this version does not have."""

    @property
    def key(self) -> object:
        """Equal for equal versions."""
        files, environment = sorted(self.files.items()), sorted(self.environment.items())
        return tuple(files), tuple(environment), self.absent

    def with_patch(self, patch: Patch) -> Version:
        """This one with a patch on top. The patch's texts are whole: they replace ours."""
        files = {os.path.abspath(path): text for path, text in patch.files.items()}
        return replace(
            self,
            files={**self.files, **files},
            environment={**self.environment, **patch.environment},
        )

    def text_of(self, path: str) -> str | None:
        """The text of a file in this version; None where there is none, or no text."""
        path = os.path.abspath(path)
        if path in self.files:
            return self.files[path]
        if path in self.absent:
            return None
        try:
            return Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError):
            return None


@dataclass(frozen=True)
class ChangedFile:
    """One file in two versions. Lines count from 1."""

    old_text: str
    new_text: str
    new_of: Mapping[int, int]
    """Old line -> new line, for those that are in both."""
    old_of: Mapping[int, int]
    removed: frozenset[int]
    """Lines of the old text that the new one does not have."""
    added: frozenset[int]
    """Lines of the new text that the old one does not have."""
    indented: frozenset[int]
    """Lines of the old text that are now in another block."""


@dataclass(frozen=True)
class Changes:
    """All files that differ."""

    files: Mapping[str, ChangedFile] = field(default_factory=dict)

    def is_new(self, file: str, line: int) -> bool:
        """Does this line of the new version come from a patch?"""
        change = self.files.get(file)
        return change is not None and line in change.added

    def is_wrapped(self, file: str, line: int) -> bool:
        """Has the patch put this line of the old version into another block?"""
        change = self.files.get(file)
        return change is not None and line in change.indented

    def left_alone(self) -> set[tuple[str, int]]:
        """(file, line) of the old version in functions that a patch marks `torch.compiler.disable`,
        or makes an operator: none of it is to be captured line by line."""
        return {
            (file, change.old_of[line])
            for file, change in self.files.items()
            for line in _disabled(change)
            if line in change.old_of
        }

    def old_line(self, file: str, line: int) -> int | None:
        """Where a line of the new version was."""
        change = self.files.get(file)
        return line if change is None else change.old_of.get(line)

    def new_line(self, file: str, line: int) -> int | None:
        """Where a line of the old version is now."""
        change = self.files.get(file)
        return line if change is None else change.new_of.get(line)


def changes_between(
    before: Version, after: Version, touched: Mapping[str, Collection[int]] | None = None
) -> Changes:
    """`touched` are lines of the new texts that count as changed whatever a comparison says."""
    found: dict[str, ChangedFile] = {}
    paths = [*before.files, *after.files, *sorted(before.absent | after.absent)]
    for path in dict.fromkeys(paths):
        old, new = before.text_of(path) or "", after.text_of(path) or ""
        if old != new:
            found[path] = _compare(old, new, (touched or {}).get(path, ()))
    return Changes(found)


def _compare(old: str, new: str, touched: Collection[int]) -> ChangedFile:
    ours, theirs = old.splitlines(), new.splitlines()
    matcher = difflib.SequenceMatcher(
        None, [line.strip() for line in ours], [line.strip() for line in theirs], autojunk=False
    )
    new_of: dict[int, int] = {}
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            if block.b + step + 1 not in touched:
                new_of[block.a + step + 1] = block.b + step + 1
    old_of = {line: was for was, line in new_of.items()}
    return ChangedFile(
        old_text=old,
        new_text=new,
        new_of=new_of,
        old_of=old_of,
        removed=frozenset(n for n in range(1, len(ours) + 1) if n not in new_of),
        added=frozenset(n for n in range(1, len(theirs) + 1) if n not in old_of),
        indented=frozenset(
            was for was, now in new_of.items() if _depth(ours[was - 1]) != _depth(theirs[now - 1])
        ),
    )


def _disabled(change: ChangedFile) -> Iterator[int]:
    try:
        tree = ast.parse(change.new_text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            marks = [each for each in node.decorator_list if each.lineno in change.added]
            if any(_hides_lines(ast.unparse(each)) for each in marks):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _hides_lines(mark: str) -> bool:
    # With `recursive=False` as well: the lines of the function itself are in no graph.
    return "compiler.disable" in mark or "library.custom_op(" in mark


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
