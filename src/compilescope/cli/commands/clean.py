"""`compilescope clean`: remove runs from disk."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from compilescope.cli.options import dir_option, home_folder, json_option, print_json


@click.command("clean", short_help="Remove runs from disk; asks first.")
@click.option(
    "--keep", type=click.IntRange(min=0), default=0, metavar="N", help="Keep the newest N."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@dir_option
def COMMAND(keep: int, yes: bool, as_json: bool, home: Path | None) -> None:
    """Remove runs from disk. Runs that are still going on are left alone."""
    from compilescope.errors import ToolError
    from compilescope.model.home import list_runs, remove_run
    from compilescope.model.run import is_live

    folder = home_folder(home)
    runs, unreadable = list_runs(folder)
    doomed = [path for path, header in runs[keep:] if not is_live(header)]
    for path, why in unreadable:
        print(f"{path.name} is left alone: {why}", file=sys.stderr)
    if doomed and not yes:
        if not sys.stdin.isatty():
            raise ToolError("clean asks before it removes, and nobody is there.", hint="Use --yes.")
        click.confirm(
            f"Remove {len(doomed)} of {len(runs)} runs in {folder}?", abort=True, err=True
        )
    for path in doomed:
        remove_run(path)
    if as_json:
        print_json({"removed": [path.name for path in doomed], "kept": len(runs) - len(doomed)})
    else:
        print(f"Removed {len(doomed)}, kept {len(runs) - len(doomed)}.")
