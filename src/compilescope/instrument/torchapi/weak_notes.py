"""A mapping with weak keys, for notes on objects that torch owns.

Unlike WeakKeyDictionary it runs no code when a key goes: an exception that a program's own signal
handler raises within a weak reference's callback would be printed and lost.
"""

from __future__ import annotations

import weakref
from typing import Any, Generic, TypeVar

V = TypeVar("V")
_FEWEST = 64
"""Notes up to which nothing is tidied. Chosen: then at every doubling, so that it costs little a
note."""


class WeakNotes(Generic[V]):
    """A note an object, found by identity."""

    def __init__(self) -> None:
        self._notes: dict[int, tuple[weakref.ref[Any], V]] = {}
        self._limit = _FEWEST

    def get(self, key: object, default: V) -> V:
        found = self._notes.get(id(key))
        # Another object may have the number of one that is gone.
        return found[1] if found is not None and found[0]() is key else default

    def __setitem__(self, key: object, note: V) -> None:
        self._notes[id(key)] = (weakref.ref(key), note)
        if len(self._notes) > self._limit:
            live = {n: kept for n, kept in list(self._notes.items()) if kept[0]() is not None}
            self._notes = live
            self._limit = max(2 * len(live), _FEWEST)

    def __len__(self) -> int:
        return len(self._notes)
