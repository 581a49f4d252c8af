"""`compilescope runs list`: the runs on disk."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from compilescope.apps.cli.options import (
    dir_option,
    has_colour,
    home_folder,
    in_home,
    json_option,
    print_json,
)
from compilescope.apps.cli.output import all_option, room
from compilescope.apps.cli.streams import put
from compilescope.base.texts import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compilescope.record.header import RunHeader
    from compilescope.record.labels import Labels
    from compilescope.record.run_files import RunFile

_AROUND = 4
"""Lines besides the runs: the columns' names, and what shows the rest."""
_LEAST_COMMAND = 8
"""Letters of a command. Chosen: with less room it is left out."""
_GAP = 2
"""Blanks between two columns. Chosen."""


@click.command("list", short_help="List the runs on disk, newest first.")
@click.option("--tag", metavar="TAG", help="Only runs with this tag. See `compilescope runs tag`.")
@click.option(
    "--artifacts", is_flag=True, help="List the files of each run, and what was made from it."
)
@all_option
@json_option
@dir_option
def COMMAND(
    tag: str | None, artifacts: bool, everything: bool, as_json: bool, home: Path | None
) -> None:
    """List the runs on disk, newest first.

    On a terminal, long commands are shortened; in a pipe nothing is left out.
    """
    from compilescope.record.home import list_runs

    folder = home_folder(home)
    runs, unreadable = list_runs(folder)
    if tag is not None:
        runs = [(path, header) for path, header in runs if tag in _labels(path).tags]
    if as_json:
        print_json(
            {
                "runs": [_value(path, header, artifacts=artifacts) for path, header in runs],
                "unreadable": [{"path": str(path), "reason": why} for path, why in unreadable],
            }
        )
        return
    if not runs and tag is not None:
        print(f"No run in {folder} has the tag {tag!r}.", file=sys.stderr)
    elif not runs:
        print(f"No runs in {folder}. Record one with: compilescope run SCRIPT", file=sys.stderr)
    else:
        _print_table(runs, home, everything=everything, artifacts=artifacts)
    for path, why in unreadable:
        print(f"{path.name}: {why}", file=sys.stderr)


def _value(path: Path, header: RunHeader, *, artifacts: bool) -> dict[str, Any]:
    from compilescope.knowledge.analysis.run_status import ended_by_the_last_lines, status_of
    from compilescope.record.run_files import run_files

    labels = _labels(path)
    value = {
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
    return {**value, "artifacts": run_files(path)} if artifacts else value


def _labels(path: Path) -> Labels:
    """None of a file that is damaged: `compilescope runs tag` says what is wrong with it."""
    from compilescope.base.errors import ToolError
    from compilescope.record.labels import Labels, read_labels

    try:
        return read_labels(path)
    except ToolError:
        return Labels()


class _RunLine(NamedTuple):
    """A run in one line, and lines below it: what it raised, what it holds."""

    cells: tuple[str, str, str]
    command: str
    raised: str
    below: list[str]

    @property
    def height(self) -> int:
        return 1 + bool(self.raised) + len(self.below)


def _print_table(
    runs: list[tuple[Path, RunHeader]], home: Path | None, *, everything: bool, artifacts: bool
) -> None:
    from rich.cells import cell_len

    terminal = sys.stdout.isatty()
    left = room(sys.stdout) - _AROUND if terminal and not everything else None
    rows: list[_RunLine] = []
    for path, header in runs:
        row = _row(path, header, artifacts=artifacts)
        if left is not None:
            left -= row.height
            if left < 0 and rows:
                break
        rows.append(row)
    head = ("RUN", "WHEN", "STATUS")
    widths = [
        max(cell_len(text) for text in column)
        for column in zip(head, *(row.cells for row in rows), strict=True)
    ]
    columns = shutil.get_terminal_size((80, 24)).columns
    most = max(columns - sum(widths) - _GAP * len(widths), 0) if terminal else None
    _print_line(_line(head, widths, "COMMAND", most), "dim")
    for row in rows:
        _print_line(_line(row.cells, widths, row.command, most))
        if row.raised and (most is None or most >= _LEAST_COMMAND):
            _print_line(_line(("", "", ""), widths, row.raised, most), "red")
        for line in row.below:
            print(f"    {line}")
    if len(rows) < len(runs):
        option = ["--artifacts"] if artifacts else []
        rest = shlex.join(["compilescope", "runs", "--all", *option, *in_home(home)])
        print(f"and {len(runs) - len(rows)} more\n\nEverything: {rest}")


def _row(path: Path, header: RunHeader, *, artifacts: bool) -> _RunLine:
    from compilescope.knowledge.analysis.run_status import ended_by_the_last_lines, status_of
    from compilescope.record.run_files import run_files
    from compilescope.report.render.spans import ago

    when = ago(time.time() - header.started_ns / 1e9)
    tags = "".join(f"  #{one_line(tag)}" for tag in _labels(path).tags)
    # A program given with -c has lines of its own; a run has one here.
    command = one_line(" ".join(header.command)) + tags
    raised = ended_by_the_last_lines(path, header).exception or ""
    below = list(_held(run_files(path))) if artifacts else []
    cells = (one_line(header.run), when, status_of(header))
    return _RunLine(cells, command, one_line(raised), below)


def _line(cells: tuple[str, ...], widths: list[int], command: str, most: int | None) -> str:
    """The command is what gives way: the others are there to be copied."""
    from rich.cells import cell_len, set_cell_size

    gap = " " * _GAP
    padded = (set_cell_size(text, width) for text, width in zip(cells, widths, strict=True))
    if most is not None and most < _LEAST_COMMAND:
        command = ""
    elif most is not None and cell_len(command) > most:
        command = set_cell_size(command, most - 1) + "…"
    return gap.join((*padded, command)).rstrip()


def _print_line(line: str, style: str = "") -> None:
    codes = {"dim": "2", "red": "31"}
    coloured = style and has_colour(sys.stdout)
    put((f"\x1b[{codes[style]}m{line}\x1b[0m" if coloured else line) + "\n")


def _held(found: list[RunFile]) -> Iterator[str]:
    """Texts that only events name are one line; all else has a line each."""
    texts = [held for held in found if held.kind == "artifact"]
    others = [held for held in found if held.kind != "artifact"]
    for held in others:
        yield f"{held.kind:<8}  {_size(held.bytes)}  {one_line(held.path)}"
    if texts:
        files = f"{len(texts)} file{'s' * (len(texts) > 1)} in artifacts/"
        yield f"{'artifact':<8}  {_size(sum(held.bytes for held in texts))}  {files}"


def _size(amount: int) -> str:
    return f"{amount / 1000:9,.1f} kB"
