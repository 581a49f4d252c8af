"""What differs between the tables of two torches; and the history, where a release is recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import msgspec

from compilescope.apps.cli.commands.registry.update import print_difference
from compilescope.apps.cli.options import write_whole
from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.downloads import current_registry
from compilescope.knowledge.registry.history import (
    HISTORY,
    History,
    difference,
    load_history,
    release_of,
    with_table,
)
from compilescope.knowledge.registry.table import Registry
from compilescope.knowledge.registry.torch_copy import read_table

_PATH = click.Path(path_type=Path)


@click.command("compare", short_help="Compare the tables of two torches.")
@click.argument("source", type=_PATH, required=False)
@click.option("--against", type=_PATH, metavar="SOURCE", help="The older one.")
@click.option("--record", is_flag=True, help="Add the version of SOURCE to the history.")
@click.option("--history", type=_PATH, metavar="FILE", default=HISTORY, help="Another history.")
def COMMAND(source: Path | None, against: Path | None, record: bool, history: Path) -> None:
    """Show what was added, removed and reworded in the table of SOURCE: a wheel, a checkout, or a
    JSON file; nothing is installed or unpacked. What is not given is the table in use: the one that
    `compilescope registry update` downloaded, else the installed torch's."""
    if source is None and against is None:
        raise ToolError("Pass SOURCE or --against: the table in use is the same as itself.")
    before = read_table(against) if against else current_registry()
    after = read_table(source) if source else current_registry()
    print_difference(difference(before, after), before, after)
    if record:
        write_whole(history, history_text(_with_release(after, history)))
        print(f"\nRecorded in {history}.")


def _with_release(table: Registry, path: Path) -> History:
    release = release_of(table.torch)
    if release is None:
        raise ToolError(
            f"{table.path} is not from a torch release ({table.torch or 'unknown version'}): "
            "only releases are recorded."
        )
    return with_table(load_history(path) if path.exists() else History(), table, release)


def history_text(history: History) -> str:
    """As it stands in the file: a line for each id, so that a diff reads well."""
    steps = [_step_text(msgspec.to_builtins(step)) for step in history.steps]
    return '{"steps": [\n' + ",\n".join(steps) + "\n]}\n"


def _step_text(step: dict[str, Any]) -> str:
    parts = []
    for name, value in step.items():
        if isinstance(value, dict):
            lines = (f"  {json.dumps(key)}: {json.dumps(value[key])}" for key in value)
            parts.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
        else:
            parts.append(f" {json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}"
