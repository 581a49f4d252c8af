"""Which compiled versions of a function were used again after another one was compiled.

torch counts how often the guards of each version failed, and keeps the one that was used last in
front. Versions go with the objects that they guard, so they are looked at now and then, and what
was seen last is written.
"""

from __future__ import annotations

import weakref
from types import CodeType
from typing import Any

from compilescope.instrument.torchapi.sinks import Sink
from compilescope.instrument.torchapi.stacks import code_ref
from compilescope.record.bodies import VersionFails, VersionsSeen
from compilescope.record.stack import CodeRef

_MOST_CODES = 200
"""Functions whose versions are looked at. Chosen: a storm makes new ones in each call."""


def fails_of(manager: Any) -> int | None:
    """How often the guards of a version failed; None where this torch does not count."""
    count = getattr(getattr(manager, "root", None), "fail_count", None)
    return count() if count is not None else None


class _Again:
    """A function that was compiled again."""

    __slots__ = ("code", "misses", "seen", "seen_at")

    def __init__(self) -> None:
        self.code: weakref.ref[CodeType] | None = None
        self.misses = self.seen_at = 0
        self.seen: tuple[CodeRef, tuple[VersionFails, ...]] | None = None


class CompiledVersions:
    """Of the functions that were compiled again in one capture, by Dynamo's number of each."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._found: dict[str, _Again] = {}

    def note_miss(self, frame: str) -> None:
        """No version of this function fits: it is compiled again."""
        if frame not in self._found:
            if len(self._found) >= _MOST_CODES:
                return
            self._found[frame] = _Again()
        self._found[frame].misses += 1

    def note_code(self, frame: str, code: CodeType) -> None:
        """The function itself, once it is known."""
        found = self._found.get(frame)
        if found is not None and found.code is None:
            found.code = weakref.ref(code)

    def look(self) -> None:
        for each in list(self._found.values()):
            code = each.code() if each.code is not None else None
            if code is None:
                continue
            versions = _versions(code)
            if len(versions) >= (len(each.seen[1]) if each.seen is not None else 2):
                each.seen, each.seen_at = (code_ref(code), versions), each.misses

    def write(self) -> None:
        """What was seen last; what is noted from now on is of new versions."""
        self.look()
        found, self._found = self._found, {}
        for each in found.values():
            if each.seen is not None:
                self._sink.emit(VersionsSeen(*each.seen, misses=each.seen_at))


def _versions(code: CodeType) -> tuple[VersionFails, ...]:
    from torch._dynamo import eval_frame

    entries_of = getattr(eval_frame, "_debug_get_cache_entry_list", None)
    if entries_of is None:
        return ()
    return tuple(
        VersionFails(str(entry.compile_id), fails)
        for entry in entries_of(code)
        if (fails := fails_of(entry.guard_manager)) is not None
    )
