"""`compilescope clean`: remove runs from disk."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from compilescope.cli.options import dir_option, home_folder, json_option, print_json

GROUP = "Share"


@click.command("clean", short_help="Delete runs from disk, after asking.")
@click.option(
    "--keep", type=click.IntRange(min=0), default=0, metavar="N", help="Keep the newest N."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@dir_option
def COMMAND(keep: int, yes: bool, as_json: bool, home: Path | None) -> None:
    """Delete runs from disk. Runs still in progress are kept."""
    from compilescope.errors import ToolError
    from compilescope.model.home import list_runs, remove_run
    from compilescope.model.run import is_live

    folder = home_folder(home)
    runs, unreadable = list_runs(folder)
    doomed = [path for path, header in runs[keep:] if not is_live(header)]
    for path, why in unreadable:
        print(f"{path.name} was not deleted: {why}", file=sys.stderr)
    if doomed and not yes:
        if not sys.stdin.isatty():
            raise ToolError(
                "clean asks before it deletes, and stdin is not a terminal.", hint="Use --yes."
            )
        click.confirm(
            f"Delete {len(doomed)} of {len(runs)} runs in {folder}?", abort=True, err=True
        )
    for path in doomed:
        remove_run(path)
    if as_json:
        print_json({"removed": [path.name for path in doomed], "kept": len(runs) - len(doomed)})
    else:
        print(f"Deleted {len(doomed)}, kept {len(runs) - len(doomed)}.")
