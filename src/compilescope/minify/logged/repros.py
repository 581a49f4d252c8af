"""Writes a repro for each break of a run that was read from logs.

From the user's own program where it is given and reaches the break; else from a tested example.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compilescope.analysis.digest import digest
from compilescope.findings.breaks import BreakFinding
from compilescope.fixes.log_files import LogFiles
from compilescope.minify.logged.example_scripts import LogRepro, shows_in_dynamo, write_stock_repro
from compilescope.minify.logged.user_program import OwnProgram, write_own
from compilescope.model.bodies import ReproWritten
from compilescope.model.command_run import append_bodies
from compilescope.model.run import read_run
from compilescope.model.run_files import REPROS
from compilescope.rules.causes.device_words import DEVICE_RULES

_MOST_S = 300.0
"""For all scripts of a log. Chosen: as long as for the failures of a run."""
_NO_TIME = "the time for repros ran out"
_NO_PROGRAM = "--script does not name the program"


@dataclass(frozen=True)
class WrittenRepros:
    """How many of which kind."""

    own: int = 0
    """Of the user's program."""
    stock: tuple[tuple[str, str], ...] = ()
    """(place, why it is a stock example)."""
    missing: tuple[tuple[str, str], ...] = ()
    """(place, why there is none)."""


def write_log_repros(
    run: Path,
    note: Callable[[str], None] = lambda doing: None,
    program: OwnProgram | None = None,
    folders: tuple[str, ...] = (),
) -> WrittenRepros:
    """A script for each break, within the run's folder; the run is told of each."""
    read = read_run(run)
    sites = [site for site in digest(read).sites if site.because]
    here = LogFiles(program.script if program is not None else "", read.header.root, folders)
    end = time.monotonic() + _MOST_S
    written, stock, missing, own = [], [], [], 0
    for number, site in enumerate(sites, 1):
        place = f"{Path(site.file).name}:{site.line}"
        if time.monotonic() > end:
            written.append(ReproWritten(site.because[0], reason=_NO_TIME))
            missing.append((place, _NO_TIME))
            continue
        note(f"repro {number} of {len(sites)}")
        if shows_in_dynamo(site, read):
            made, why = _write(site, run / REPROS, program, here)
        else:  # A run of the program here would be no use.
            why = DEVICE_RULES[site.rule or ""].no_repro
            made = write_stock_repro(site, run / REPROS, why)
        own += made.path is not None and not why
        if made.path is not None and why:
            stock.append((place, f"{why}; unverified: {made.reason}" if made.reason else why))
        elif made.path is None:
            missing.append((place, made.reason))
        inside = f"{REPROS}/{made.path.name}" if made.path is not None else ""
        written.append(ReproWritten(site.because[0], inside, made.reason))
    append_bodies(run, written)
    return WrittenRepros(own, tuple(stock), tuple(missing))


def _write(
    site: BreakFinding, folder: Path, program: OwnProgram | None, here: LogFiles
) -> tuple[LogRepro, str]:
    """The repro, and why it is not of the user's program; empty where it is."""
    why = _NO_PROGRAM
    if program is not None and importlib.util.find_spec("torch") is None:
        why = "torch is not installed here"
    elif program is not None:
        file = here.find(site.file, site.line, site.source)
        why = f"{Path(site.file).name} is not here with the line that the log shows"
        if file is not None:
            made = write_own(site, program, file, folder)
            if made.path is not None:
                return LogRepro(site.fingerprint, made.path, verified=True), ""
            why = made.reason
    return write_stock_repro(site, folder, why), why
