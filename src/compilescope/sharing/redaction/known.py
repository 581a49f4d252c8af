"""Finds in a text what is known of a run: its paths, the strings of its code.

There may be as many of them as there are lines to search, so none is tried for its own sake: paths
are walked part by part, strings are looked up by how they begin.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_SEPARATOR = re.compile(r"[/\\]")
_LONGEST_PART = 256
"""Of a path: no file system takes a longer name."""
_MOST_PARTS = 300
"""Of a path. Chosen: a bound for texts that are all separators."""
_START = 6
"""Letters by which paths and strings are looked up. Chosen: few strings begin alike in so many, and
shorter ones are words of any text."""
_FEW = 50
"""Beginnings for which one expression is quicker than looking at every separator. Chosen, not
measured."""
_MOST_LOOKED = 100_000_000
"""Letters of strings that begin as a line does. Chosen: it bounds the time for a run whose strings
all begin alike."""


class _Folder:
    """What begins alike: folders by name, and the ends of paths."""

    __slots__ = ("ends", "folders", "lengths")

    def __init__(self) -> None:
        self.folders: dict[str, _Folder] = {}
        self.ends: set[str] = set()
        self.lengths: list[int] = []


class KnownPaths:
    """Paths that may stand anywhere in a text, and may hold anything, blanks too."""

    def __init__(self, paths: Collection[str]) -> None:
        self._top = _Folder()
        folders = {id(self._top): self._top}
        for path in paths:
            node = self._top
            at = 0
            for match in _SEPARATOR.finditer(path):
                node = node.folders.setdefault(path[at : match.end()], _Folder())
                at = match.end()
            node.ends.add(path[at:])
            folders[id(node)] = node
        for node in folders.values():
            node.lengths = sorted({len(end) for end in node.ends}, reverse=True)
        starts = {path[:_START] for path in paths}
        few = len(starts) <= _FEW
        self._starts = re.compile("|".join(map(re.escape, starts)) or "(?!)") if few else None

    def may_be_in(self, text: str) -> bool:
        if self._starts is None:
            return "/" in text or ":" in text
        return self._starts.search(text) is not None

    def end(self, text: str, at: int) -> int:
        """Where the longest path ends that begins at `at`; `at` where none does."""
        found, start = at, at
        node: _Folder | None = self._top
        for _ in range(_MOST_PARTS):
            assert node is not None
            for length in node.lengths:
                end = text[start : start + length]
                if len(end) == length and start + length > found and end in node.ends:
                    found = start + length
                    break
            match = _SEPARATOR.search(text, start, start + _LONGEST_PART)
            node = node.folders.get(text[start : match.end()]) if match else None
            if match is None or node is None:
                break
            start = match.end()
        return found


class KnownTexts:
    """Strings, and whether a line holds one of them."""

    def __init__(self) -> None:
        self._by_start: dict[str, set[str]] = {}
        self._lengths: dict[str, set[int]] = {}
        self._starts: set[int] = set()
        """How long the beginnings are: a short string is its own."""
        self._looked = 0

    def add(self, text: str) -> None:
        start = text[:_START]
        if start:
            self._by_start.setdefault(start, set()).add(text)
            self._lengths.setdefault(start, set()).add(len(text))
            self._starts.add(len(start))

    def is_in(self, line: str) -> bool:
        """Does the line hold one? Where that takes too long to tell, it is taken to."""
        return any(
            self._is_at(line, at, line[at : at + length])
            for length in self._starts
            for at in range(len(line) - length + 1)
            if line[at : at + length] in self._by_start
        )

    def _is_at(self, line: str, at: int, start: str) -> bool:
        lengths, texts = self._lengths[start], self._by_start[start]
        self._looked += sum(lengths)
        if self._looked > _MOST_LOOKED:
            return True
        return any(line[at : at + length] in texts for length in lengths)
