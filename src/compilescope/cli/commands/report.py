"""`compilescope report`: the whole story of one run or several, in a file to share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compilescope.cli.files import write_whole
from compilescope.cli.options import dir_option, has_colour, home_folder, report_width
from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.model.run import Run

_FORMATS = ("html", "md", "json", "sarif", "terminal", "trace")
_BY_SUFFIX = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".sarif": "sarif",
    ".json": "json",
    ".txt": "terminal",
}


@click.command("report", short_help="The whole story as HTML, markdown, JSON, SARIF or a trace.")
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
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

    form = form or (_BY_SUFFIX.get(output.suffix.lower()) if output else None) or "html"
    if opened and form != "html":
        raise ToolError("--open shows HTML only.", hint="Leave --format out, or --open.")
    folder = home_folder(home)
    found = [find_run(folder, name) for name in runs] or [find_run(folder, None)]
    read = [read_run(path) for path in dict.fromkeys(found)]
    if output is None and form == "html" and (opened or sys.stdout.isatty()):
        output = Path(f"{read[0].header.run}.html")
    text = _draw(read, form, to_file=output is not None)
    if output is None:
        sys.stdout.write(text)
        return
    write_whole(output, text)
    print(f"Wrote {output} ({len(text.encode()) / 1e6:.1f} MB).", file=sys.stderr)
    if opened:
        import webbrowser

        if not webbrowser.open(output.absolute().as_uri()):
            print(f"No browser could be started: open {output} yourself.", file=sys.stderr)


def _draw(runs: list[Run], form: str, *, to_file: bool) -> str:
    if form == "trace":
        return _trace(runs)
    from compilescope.report.document import report_document
    from compilescope.report.section import Reading

    readings = [Reading(run, full=True) for run in runs]
    documents = [report_document(reading) for reading in readings]
    if form == "html":
        from compilescope.report.render.page import to_page

        return to_page(documents)
    if form == "json":
        from compilescope.report.render.structured import to_json

        return to_json(documents, [reading.digest for reading in readings])
    if form == "sarif":
        from compilescope.report.render.sarif import to_sarif

        return to_sarif(documents)
    if form == "md":
        from compilescope.report.render.markdown import to_markdown

        return "\n".join(to_markdown(document) for document in documents)
    from compilescope.report.render.terminal import to_text

    colour = has_colour(sys.stdout) and not to_file
    return "\n".join(to_text(d, width=report_width(), colour=colour) for d in documents)


def _trace(runs: list[Run]) -> str:
    from compilescope.report.trace import to_trace

    if len(runs) > 1:
        raise ToolError("A trace is of one run.", hint="Name one RUN.")
    return to_trace(runs[0]).decode()
