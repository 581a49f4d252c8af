"""`compilescope list`: the runs on disk."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.cli.options import (
    dir_option,
    has_colour,
    home_folder,
    in_home,
    json_option,
    print_json,
)
from compilescope.cli.telling import all_option, room

if TYPE_CHECKING:
    from compilescope.model.header import RunHeader
    from compilescope.rules.ended import Ended

GROUP = "Share"
_AROUND = 4
"""Lines besides the runs: the columns' names, and what shows the rest."""


@click.command("list", short_help="List the runs on disk, newest first.")
@all_option
@json_option
@dir_option
def COMMAND(everything: bool, as_json: bool, home: Path | None) -> None:
    """List the runs on disk, newest first."""
    from compilescope.model.home import list_runs

    folder = home_folder(home)
    runs, unreadable = list_runs(folder)
    if as_json:
        print_json(
            {
                "runs": [_row(path, header) for path, header in runs],
                "unreadable": [{"path": str(path), "reason": why} for path, why in unreadable],
            }
        )
        return
    if not runs:
        print(f"No runs in {folder}. Record one with: compilescope run SCRIPT", file=sys.stderr)
    else:
        _print_table(runs, home, everything=everything)
    for path, why in unreadable:
        print(f"{path.name}: {why}", file=sys.stderr)


def _row(path: Path, header: RunHeader) -> dict[str, Any]:
    return {
        "run": header.run,
        "path": str(path),
        "command": list(header.command),
        "started": header.started_ns / 1e9,
        "status": _status(header),
        "exit_status": header.exit_status,
        "signal": header.signal,
        "ended": _ended(path, header),
    }


def _ended(path: Path, header: RunHeader) -> Ended:
    """How it ended, from the header and the last lines of its files: a run may be large."""
    from compilescope.model.artifacts import MemoryArtifacts
    from compilescope.model.eventfile import event_files, last_events
    from compilescope.model.run import Run, is_live
    from compilescope.rules.ended import how_it_ended

    last = []
    with contextlib.suppress(OSError):
        # An exception is told of only where there may have been one.
        if header.exit_status != 0:
            last = [event for file in event_files(path) for event in last_events(file)]
    return how_it_ended(Run(header, last, MemoryArtifacts(), live=is_live(header)))


def _status(header: RunHeader) -> str:
    from compilescope.model.header import signal_name
    from compilescope.model.run import is_live

    if header.signal is not None:
        return signal_name(header.signal) or ""
    if header.exit_status is not None:
        return "ok" if header.exit_status == 0 else f"exit {header.exit_status}"
    if header.launcher_pid is None:
        return "ok" if header.ended_ns is not None else "open"
    return "running" if is_live(header) else "cut short"


def _print_table(
    runs: list[tuple[Path, RunHeader]], home: Path | None, *, everything: bool
) -> None:
    from rich.console import Console
    from rich.table import Table

    colour = has_colour(sys.stdout)
    console = Console(no_color=not colour, highlight=False, emoji=False, markup=False)
    table = Table.grid(padding=(0, 2), expand=True)
    for name in ("RUN", "WHEN", "STATUS"):
        table.add_column(name, no_wrap=True)
    table.add_column("COMMAND", overflow="ellipsis", no_wrap=True, ratio=1)
    table.add_row("RUN", "WHEN", "STATUS", "COMMAND", style="dim" if colour else None)
    left = 2 * len(runs) if everything else room(sys.stdout) - _AROUND
    shown = 0
    for path, header in runs:
        raised = _ended(path, header).exception
        left -= 2 if raised else 1
        if left < 0:
            break
        shown += 1
        when = _ago(time.time() - header.started_ns / 1e9)
        table.add_row(header.run, when, _status(header), " ".join(header.command))
        if raised:
            table.add_row("", "", "", raised, style="red" if colour else None)
    console.print(table)
    if shown < len(runs):
        rest = shlex.join(["compilescope", "list", "--all", *in_home(home)])
        print(f"and {len(runs) - shown} more\n\nEverything: {rest}")


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"
