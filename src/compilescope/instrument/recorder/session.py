"""Capture within this process: puts the hooks on, runs a recorder, and undoes both at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compilescope.instrument.recorder.journal import Journal
from compilescope.instrument.recorder.recorder import Recorder
from compilescope.instrument.torchapi.hook import Watch
from compilescope.instrument.torchapi.install import hooked


@contextmanager
def recording(
    journal: Journal,
    *,
    ir: bool = False,
    calls: bool = False,
    time: bool = False,
    profile: int = 0,
) -> Iterator[Recorder]:
    """Everything torch.compile does within the block goes to `journal`."""
    recorder = Recorder(journal)
    recorder.start()
    try:
        watch = Watch(recorder, ir=ir, calls=calls, time=time, profile=profile)
        with hooked(watch):
            yield recorder
    finally:
        recorder.end()
        journal.close()
