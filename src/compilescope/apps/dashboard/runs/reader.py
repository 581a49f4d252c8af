"""The process that reads runs for the index: what a run holds may be large, or anyone's.

It is asked in JSON, the home folder and what is known of some runs each time, and answers with:
the name of the run that it is about to read, an entry where something differs, `null` at the end.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from compilescope.apps.dashboard.runs.entry import RunEntry, look, same_record, stamp_of
from compilescope.base.errors import ToolError
from compilescope.base.processes.channel import Channel, leave_with
from compilescope.knowledge.analysis.figures import figures
from compilescope.record.run import read_run

_NICE = 10
"""Chosen: a page that somebody waits for goes first."""


class KnownRun(msgspec.Struct, frozen=True):
    """What the index knows of a run."""

    name: str
    touched: int
    stamp: str


class ReadRequest(msgspec.Struct, frozen=True):
    """What the index wants to know."""

    home: str
    runs: tuple[KnownRun, ...]


Answer = str | RunEntry | None
"""A name: this run is read next. An entry: what was found; one with a stamp, yet neither figures
nor a problem, has the figures that are known already. None: all were looked at."""


def main() -> None:
    """Until the server closes its end of the channel."""
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    index = Channel.given(int(sys.argv[-1]))
    leave_with(index)
    try:
        while asked := index.receive():
            for answer in _answers(msgspec.json.decode(asked, type=ReadRequest)):
                index.send(msgspec.json.encode(answer))
    except BrokenPipeError:
        os._exit(0)  # Nobody listens any more.


def _answers(wanted: ReadRequest) -> Iterator[Answer]:
    for known in wanted.runs:
        yield from examine(Path(wanted.home) / known.name, known)
    yield None


def examine(folder: Path, known: KnownRun) -> Iterator[str | RunEntry]:
    try:
        touched = folder.stat().st_mtime_ns
        stamp = stamp_of(folder)
    except OSError:
        return  # It was deleted meanwhile.
    if stamp == known.stamp and touched == known.touched:
        return
    entry = look(folder, touched)
    if entry.header is None or (known.stamp and same_record(stamp, known.stamp)):
        yield msgspec.structs.replace(entry, stamp=stamp)
        return
    yield known.name
    try:
        found = figures(read_run(folder, header=entry.header))
        yield msgspec.structs.replace(entry, stamp=stamp, figures=found)
    except ToolError as error:
        yield msgspec.structs.replace(entry, stamp=stamp, problem=error.message)
    except Exception as error:  # The border: a run of which a rule makes nothing is one row.
        said = f"Its figures can't be computed: {type(error).__name__}."
        yield msgspec.structs.replace(entry, stamp=stamp, problem=said)


if __name__ == "__main__":
    main()
