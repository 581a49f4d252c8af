"""Appends to a run, after it has ended, the repros that were made for it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from compilescope.model.bodies import ReproWritten
from compilescope.model.event import Event, encode
from compilescope.model.eventfile import EventFile

REPROS = "repros"
"""The folder within the run's."""


def tell_run(run: Path, written: Iterable[ReproWritten]) -> None:
    """Append what became of each."""
    bodies = list(written)
    if not bodies:
        return
    file, name = EventFile.claim(run, 0)
    for number, body in enumerate(bodies):
        event = Event(id=f"{name}.{number}", time_ns=time.time_ns(), pid=os.getpid(), body=body)
        file.write(encode(event))
    file.close()
