"""Repros for the breaks of a run that was read from logs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from compilescope.minify.logged.repro import write_repro
from compilescope.minify.telling import REPROS, tell_run
from compilescope.model.bodies import ReproWritten
from compilescope.model.run import read_run
from compilescope.rules.digest import digest

_MOST_S = 300.0
_NO_TIME = "the time for repros ran out"


def write_log_repros(run: Path, note: Callable[[str], None] = lambda doing: None) -> None:
    """A script for each break, within the run's folder; the run is told of each."""
    sites = [site for site in digest(read_run(run)).sites if site.because]
    end = time.monotonic() + _MOST_S
    written = []
    for number, site in enumerate(sites, 1):
        if time.monotonic() > end:
            written.append(ReproWritten(site.because[0], reason=_NO_TIME))
            continue
        note(f"repro {number} of {len(sites)}")
        made = write_repro(site, run / REPROS)
        inside = f"{REPROS}/{made.path.name}" if made.path is not None else ""
        written.append(ReproWritten(site.because[0], inside, made.reason))
    tell_run(run, written)
