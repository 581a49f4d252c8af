"""Several patches of one text put together, line by line; those that touch the same lines wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple


class Hunk(NamedTuple):
    """Lines `start` to `end` (from 0, the end not among them) become `lines`."""

    start: int
    end: int
    lines: tuple[str, ...]

    @property
    def inserts(self) -> bool:
        return self.start == self.end

    def touches(self, other: Hunk) -> bool:
        if self.inserts and other.inserts:
            return False  # Both go there, one after the other.
        if self.inserts or other.inserts:
            put, cut = (self, other) if self.inserts else (other, self)
            return cut.start < put.start < cut.end
        return self.start < other.end and other.start < self.end


def hunks(base: str, text: str) -> list[Hunk]:
    """What makes `text` of `base`."""
    old, new = base.splitlines(keepends=True), text.splitlines(keepends=True)
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [Hunk(i1, i2, tuple(new[j1:j2])) for kind, i1, i2, j1, j2 in codes if kind != "equal"]


def applied(base: str, changes: Sequence[Hunk]) -> str:
    """`base` with changes that do not touch each other."""
    lines = base.splitlines(keepends=True)
    for change in sorted(changes, key=lambda each: (each.start, each.end), reverse=True):
        lines[change.start : change.end] = change.lines
    return "".join(lines)


Texts = Mapping[str, str]


def merge(bases: Texts, patches: Sequence[Texts]) -> tuple[dict[str, str], list[int]]:
    """The texts with as many patches as go together, and which of them those are."""
    taken: dict[str, list[Hunk]] = {}
    kept: list[int] = []
    for number, patch in enumerate(patches):
        wanted = {
            file: [h for h in hunks(bases[file], text) if h not in taken.get(file, [])]
            for file, text in patch.items()
        }
        clash = any(
            new.touches(old)
            for file, changes in wanted.items()
            for new in changes
            for old in taken.get(file, [])
        )
        if clash:
            continue
        kept.append(number)
        for file, changes in wanted.items():
            taken.setdefault(file, []).extend(changes)
    return {file: applied(bases[file], changes) for file, changes in taken.items()}, kept
