"""`compilescope report`: the whole story of one run or several, in a file to share."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from compilescope.cli.files import write_whole
from compilescope.cli.options import dir_option, home_folder
from compilescope.cli.progress import working
from compilescope.cli.reports import FORMATS, draw, format_of
from compilescope.cli.sweep_jobs import found_run, job_option
from compilescope.errors import ToolError

GROUP = "Share"


@click.command(
    "report", short_help="Write a report to share: HTML, markdown, JSON, SARIF or a trace."
)
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Output format; trace is a timeline for Perfetto. [default: by FILE's suffix, or html]",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="The file to write."
)
@job_option
@click.option("--open", "opened", is_flag=True, help="Open it in a browser.")
@dir_option
def COMMAND(
    runs: tuple[str, ...],
    form: str | None,
    output: Path | None,
    job: str | None,
    opened: bool,
    home: Path | None,
) -> None:
    """Write the full report of each RUN, given by its id or the start of it (default: the latest).

    Without -o it goes to stdout; HTML goes to a file named after the run if stdout is a terminal.
    Markdown is at most 60 KB, so that it fits a GitHub comment.
    """
    from compilescope.model.run import read_run

    form = form or (format_of(output) if output else None) or "html"
    if opened and form != "html":
        raise ToolError("--open works with HTML only.", hint="Drop --format or --open.")
    folder = home_folder(home)
    found = [found_run(folder, name, job) for name in runs or (None,)]
    with working("report", "reading the run"):
        read = [read_run(path) for path in dict.fromkeys(found)]
    if output is None and form == "html" and (opened or sys.stdout.isatty()):
        output = Path(f"{read[0].header.run}.html")
    with working("report", "writing the report"):
        text = draw(read, form, to_file=output is not None)
    if output is None:
        sys.stdout.write(text)
        return
    write_whole(output, text)
    print(f"Wrote {output} ({len(text.encode()) / 1e6:.1f} MB).", file=sys.stderr)
    if opened:
        import webbrowser

        if not webbrowser.open(output.absolute().as_uri()):
            print(f"Could not start a browser; open {output} yourself.", file=sys.stderr)
