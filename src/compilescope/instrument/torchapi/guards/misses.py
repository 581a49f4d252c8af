"""The cache entries that a recompile could not use: listed, and in a storm folded.

torch asks every entry of a frame why it did not fit, so a frame that is compiled a thousand times
asks half a million times. Each answer names one guard. Past the first compilations the guard tree
is walked only for the first entry of each kind of answer, the rest are counted: what a recompile
costs and writes stays the same, however many entries there are.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from compilescope.record.bodies import CacheEntryMiss
from compilescope.record.storms import MOST_WALKED

_MOST_TOPICS = 4
"""Entries of a recompile that are walked in a storm. Chosen: a walk asks every guard of an entry,
which may have hundreds; recompiles that follow list others, so that in time each cause is seen.
What a storm costs is shown by benchmarks/storms.py."""
_POINTER = re.compile(r", \d+\)")
_NUMBER = re.compile(r"(?<![\w\[.'\"])-?\d+(?:\.\d+)?(?![\w\]'\"])")
_END = re.compile(r"  #|\Z")
"""Of an answer's own words."""
_Folded = list[Any]
"""The compile ids of entries that were folded into a listed one. Kept as they come: this runs for
every entry, and the newest is asked for once."""


class Misses:
    """Of one frame, while it is compiled again."""

    __slots__ = ("_beginnings", "_listed", "_topics", "code", "storm", "unlisted")

    def __init__(self) -> None:
        self.code: Any = None
        self.storm = False
        """Many entries: fold them."""
        self.unlisted = 0
        self._listed: list[tuple[CacheEntryMiss, _Folded]] = []
        self._topics: dict[str, _Folded] = {}
        self._beginnings: list[tuple[str, re.Pattern[str] | None, _Folded]] = []
        """How torch's words begin, what must follow, and where such an entry belongs."""

    def __bool__(self) -> bool:
        return bool(self._listed)

    def fold(self, compile_id: Any, reason: str) -> bool:
        """Count an entry for which torch gave this reason; False if it is to be listed instead."""
        # `0/17: self.calls == 3`. Most entries fail like one of those before.
        start = reason.find(": ") + 2
        for alike, then, folded in self._beginnings:
            if reason.startswith(alike, start) and (
                then is None or then.match(reason, start + len(alike))
            ):
                folded.append(compile_id)
                return True
        return self._fold_by_topic(compile_id, reason)

    def _fold_by_topic(self, compile_id: Any, reason: str) -> bool:
        about = topic(reason)
        folded = self._topics.get(about)
        if folded is None:
            folded = self._topics.get(_without_numbers(about))
        if folded is None:
            self.unlisted += len(self._topics) >= _MOST_TOPICS
            return len(self._topics) >= _MOST_TOPICS
        beginning = _beginning(about, reason)
        if beginning is not None:
            # What came last comes first. There are not many more ways to begin than topics.
            self._beginnings = [(*beginning, folded), *self._beginnings[: _MOST_TOPICS - 1]]
        folded.append(compile_id)
        return True

    def list(self, miss: CacheEntryMiss, reason: str) -> None:
        """An entry with all its failed guards; in a storm, later ones like it are folded."""
        folded: _Folded = []
        if self.storm:
            self._topics[_without_numbers(topic(reason))] = folded
        self._listed.append((miss, folded))
        self.storm = self.storm or len(self._listed) >= MOST_WALKED

    def entries(self) -> tuple[CacheEntryMiss, ...]:
        return tuple(
            msgspec.structs.replace(miss, folded=len(folded), newest=str(max(folded, key=_age)))
            if folded
            else miss
            for miss, folded in self._listed
        )


def _age(compile_id: Any) -> int:
    return getattr(compile_id, "frame_compile_id", None) or 0


def topic(reason: str) -> str:
    """What torch's answer is about, without the value that the entry was made for.

    This runs for every entry: it looks for fixed words and leaves the rest as it is.
    """
    start = reason.find(": ") + 2
    end = reason.find("  #", start)
    if end < 0:
        end = reason.find("\n", start)
    words = reason[start:end] if end >= 0 else reason[start:]
    about, compared, _ = words.partition(" == ")
    if compared:
        return about
    if words.startswith("tensor "):
        return words.partition(" expected ")[0]
    if words.startswith("___check_"):
        return _POINTER.split(words, maxsplit=1)[0]
    if words.startswith("BACKEND_MATCH"):
        return "BACKEND_MATCH"
    return words


def _beginning(about: str, reason: str) -> tuple[str, re.Pattern[str] | None] | None:
    """Words that begin like this, and go on like that, have the same `topic`."""
    start = reason.find(": ") + 2
    for sign in (" == ", " expected "):
        if reason.startswith(f"{about}{sign}", start):
            return f"{about}{sign}", None
    end = start + len(about)
    if about.startswith("___check_") and _POINTER.match(reason, end):
        return about, _POINTER
    return (about, _END) if about and _END.match(reason, end) else None


def _without_numbers(about: str) -> str:
    """`x.size()[0] <= 17` and `<= 18` are one; an index in brackets or in words says which size."""
    return about if about.startswith("tensor ") else _NUMBER.sub("N", about)
