"""The sinks of the captures that are on, for sources that are no hooks: backends tell them too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compilescope.torchapi.hook import Sink

_active: list[Sink] = []


@contextmanager
def announced(sink: Sink) -> Iterator[None]:
    """The sink is there to be written to until the end of the block."""
    _active.append(sink)
    try:
        yield
    finally:
        _active.remove(sink)


def active_sinks() -> tuple[Sink, ...]:
    return tuple(_active)
