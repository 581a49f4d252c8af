"""The original's run, kept with the attempts to mend it, so that a report can show both."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from compilescope.model.bodies import FixAttempt
from compilescope.model.event import Event, encode
from compilescope.model.eventfile import EventFile
from compilescope.repair.search.outcome import Attempt


def keep_run(folder: Path, home: Path, attempts: list[Attempt]) -> Path | None:
    """Copy the run to the user's own; None where that cannot be written."""
    target = home.absolute() / folder.name
    try:
        shutil.copytree(folder, target)
        tell_attempts(target, attempts)
    except OSError:
        shutil.rmtree(target, ignore_errors=True)
        return None
    return target


def tell_attempts(run: Path, attempts: list[Attempt]) -> None:
    """Append what became of each."""
    if not attempts:
        return
    file, name = EventFile.claim(run, 0)
    for number, each in enumerate(attempts):
        body = FixAttempt(
            fix=each.fix,
            title=each.title,
            verdict=each.verdict,
            because=each.because,
            cause=each.cause,
            reason=each.reason,
            states=each.states,
            kept=each.kept,
            diff=each.diff,
        )
        event = Event(id=f"{name}.{number}", time_ns=time.time_ns(), pid=os.getpid(), body=body)
        file.write(encode(event))
    file.close()
