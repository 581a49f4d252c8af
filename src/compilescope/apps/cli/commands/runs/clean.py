"""`compilescope runs clean`: remove runs from disk."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from compilescope.apps.cli.options import RUN_NAME, dir_option, home_folder, json_option, print_json


@click.command("clean", short_help="Delete runs from disk, after asking.")
@click.argument("named", metavar="[RUN]...", nargs=-1, type=RUN_NAME)
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep the newest N.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@dir_option
def COMMAND(
    named: tuple[str, ...], keep: int | None, yes: bool, as_json: bool, home: Path | None
) -> None:
    """Delete each RUN from disk, given by its id or the start of it (default: all runs). Runs still
    in progress are kept."""
    from compilescope.base.errors import ToolError
    from compilescope.record.home import find_run, list_runs, remove_run
    from compilescope.record.run import is_live

    folder = home_folder(home)
    if named and keep is not None:
        raise ToolError("Give RUNs or --keep, not both.")
    runs, unreadable = list_runs(folder)
    chosen = runs[keep:]
    if named:
        wanted = {find_run(folder, name).absolute() for name in named}
        chosen = [(path, header) for path, header in runs if path.absolute() in wanted]
        elsewhere = wanted.difference(path.absolute() for path, _ in runs)
        if elsewhere:
            raise ToolError(f"{min(elsewhere)} is not a readable run in {folder}.")
    doomed = [path for path, header in chosen if not is_live(header)]
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
