"""`compilescope runs import`: a run that was exported, here or elsewhere."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from compilescope.apps.cli.options import dir_option, home_folder, in_home, json_option, print_json
from compilescope.apps.cli.progress import working


@click.command("import", short_help="Import an exported run.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace a run with the same id.")
@json_option
@dir_option
def COMMAND(file: Path, force: bool, as_json: bool, home: Path | None) -> None:
    """Import the run in FILE. Nothing in it is executed."""
    import msgspec

    from compilescope.report.sharing.archive import import_archive

    with working("import", "unpacking") as work:
        imported = import_archive(file, home_folder(home), force=force, progress=work.percent)
    if as_json:
        print_json({**msgspec.structs.asdict(imported), "path": str(imported.path)})
        return
    if imported.already_there:
        print(f"The run {imported.run} was already imported.")
    elif imported.renamed_from:
        print(f"Imported as {imported.run}: another run here is named {imported.renamed_from}.")
    else:
        print(f"Imported {imported.run}: {imported.files} files.")
    if imported.unread:
        print(f"{imported.unread} lines of its events could not be read.", file=sys.stderr)
    command = shlex.join(["compilescope", "show", *in_home(home), imported.run])
    print(f"See it with: {command}", file=sys.stderr)
