"""Compile ids: `frame/compile_attempt`, unique within one process and epoch only."""

from __future__ import annotations

import functools

from compilescope.model.event import Event

Process = tuple[str, int]
"""As in the ids of its events, and its pid: a pid alone may be that of another machine."""
CompileKey = tuple[Process, int, str]
"""Process, epoch and compile id without the attempt."""


def process_of(event: Event) -> Process:
    return _process(event.id.rpartition(".")[0], event.pid)


@functools.lru_cache(1 << 12)
def _process(name: str, pid: int) -> Process:
    """One for all its events: views keep a key for each compilation."""
    return name, pid


def compile_key(event: Event, compile_id: str | None) -> CompileKey | None:
    if compile_id is None:
        return None
    # As `process_of` and `without_attempt` say, without two calls: asked of every event, by many.
    process = _process(event.id.rpartition(".")[0], event.pid)
    return process, event.epoch, compile_id.partition("_")[0]


def without_attempt(compile_id: str) -> str:
    return compile_id.partition("_")[0]


def frame_number(compile_id: str) -> str:
    """What all compilations of one code object share: `3` of `3/0`, `!0/3` of `!0/3/0`."""
    return compile_id.rpartition("/")[0] or compile_id
