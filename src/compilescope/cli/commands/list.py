"""`compilescope list`: the runs on disk."""

from __future__ import annotations

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
    from compilescope.model.labels import Labels

GROUP = "Share"
_AROUND = 4
"""Lines besides the runs: the columns' names, and what shows the rest."""


@click.command("list", short_help="List the runs on disk, newest first.")
@click.option("--tag", metavar="TAG", help="Only runs with this tag. See `compilescope tag`.")
@all_option
@json_option
@dir_option
def COMMAND(tag: str | None, everything: bool, as_json: bool, home: Path | None) -> None:
    """List the runs on disk, newest first."""
    from compilescope.model.home import list_runs

    folder = home_folder(home)
    runs, unreadable = list_runs(folder)
    if tag is not None:
        runs = [(path, header) for path, header in runs if tag in _labels(path).tags]
    if as_json:
        print_json(
            {
                "runs": [_row(path, header) for path, header in runs],
                "unreadable": [{"path": str(path), "reason": why} for path, why in unreadable],
            }
        )
        return
    if not runs and tag is not None:
        print(f"No run in {folder} has the tag {tag!r}.", file=sys.stderr)
    elif not runs:
        print(f"No runs in {folder}. Record one with: compilescope run SCRIPT", file=sys.stderr)
    else:
        _print_table(runs, home, everything=everything)
    for path, why in unreadable:
        print(f"{path.name}: {why}", file=sys.stderr)


def _row(path: Path, header: RunHeader) -> dict[str, Any]:
    from compilescope.rules.glance import ended_by_the_last_lines, status_of

    labels = _labels(path)
    return {
        "run": header.run,
        "path": str(path),
        "command": list(header.command),
        "started": header.started_ns / 1e9,
        "status": status_of(header),
        "exit_status": header.exit_status,
        "signal": header.signal,
        "ended": ended_by_the_last_lines(path, header),
        "tags": list(labels.tags),
        "note": labels.note,
    }


def _labels(path: Path) -> Labels:
    """None of a file that is damaged: `compilescope tag` says what is wrong with it."""
    from compilescope.errors import ToolError
    from compilescope.model.labels import Labels, read_labels

    try:
        return read_labels(path)
    except ToolError:
        return Labels()


def _print_table(
    runs: list[tuple[Path, RunHeader]], home: Path | None, *, everything: bool
) -> None:
    from rich.console import Console
    from rich.table import Table

    from compilescope.report.render.spans import ago
    from compilescope.rules.glance import ended_by_the_last_lines, status_of

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
        raised = ended_by_the_last_lines(path, header).exception
        left -= 2 if raised else 1
        if left < 0:
            break
        shown += 1
        when = ago(time.time() - header.started_ns / 1e9)
        tags = "".join(f"  #{tag}" for tag in _labels(path).tags)
        table.add_row(header.run, when, status_of(header), " ".join(header.command) + tags)
        if raised:
            table.add_row("", "", "", raised, style="red" if colour else None)
    console.print(table)
    if shown < len(runs):
        rest = shlex.join(["compilescope", "list", "--all", *in_home(home)])
        print(f"and {len(runs) - shown} more\n\nEverything: {rest}")
