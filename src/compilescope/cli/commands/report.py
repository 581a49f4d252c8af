"""`compilescope report`: the whole story of one run or several, in a file to share."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from compilescope.cli.files import write_whole
from compilescope.cli.options import dir_option, home_folder
from compilescope.cli.reports import FORMATS, draw, format_of
from compilescope.errors import ToolError


@click.command("report", short_help="The whole story as HTML, markdown, JSON, SARIF or a trace.")
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="How to draw it; trace is a timeline for Perfetto. [default: by FILE's ending, or html]",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write it there."
)
@click.option("--open", "opened", is_flag=True, help="Show it in a browser.")
@dir_option
def COMMAND(
    runs: tuple[str, ...], form: str | None, output: Path | None, opened: bool, home: Path | None
) -> None:
    """Tell the whole story of each RUN: by default the latest, by its id or the start of it.

    Without -o it goes to stdout; HTML goes to a file named for the run where stdout is a terminal.
    """
    from compilescope.model.home import find_run
    from compilescope.model.run import read_run

    form = form or (format_of(output) if output else None) or "html"
    if opened and form != "html":
        raise ToolError("--open shows HTML only.", hint="Leave --format out, or --open.")
    folder = home_folder(home)
    found = [find_run(folder, name) for name in runs] or [find_run(folder, None)]
    read = [read_run(path) for path in dict.fromkeys(found)]
    if output is None and form == "html" and (opened or sys.stdout.isatty()):
        output = Path(f"{read[0].header.run}.html")
    text = draw(read, form, to_file=output is not None)
    if output is None:
        sys.stdout.write(text)
        return
    write_whole(output, text)
    print(f"Wrote {output} ({len(text.encode()) / 1e6:.1f} MB).", file=sys.stderr)
    if opened:
        import webbrowser

        if not webbrowser.open(output.absolute().as_uri()):
            print(f"No browser could be started: open {output} yourself.", file=sys.stderr)
