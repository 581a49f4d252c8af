"""`compilescope show`: the report of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from compilescope.cli.options import (
    dir_option,
    has_colour,
    home_folder,
    json_option,
    print_json,
    report_width,
)


@click.command("show", short_help="Show a run: the latest, or RUN by the start of its id.")
@click.argument("run", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "md", "json"]),
    default="terminal",
    help="How to draw it.",
)
@json_option
@dir_option
def COMMAND(run: str | None, form: str, as_json: bool, home: Path | None) -> None:
    """Show a run: the latest, or RUN by its id, the start of its id, or its folder."""
    from compilescope.model.home import find_run
    from compilescope.model.run import read_run
    from compilescope.report.section import Reading

    reading = Reading(read_run(find_run(home_folder(home), run)))
    if as_json or form == "json":
        print_json(reading.digest)
        return
    from compilescope.report.document import report_document
    from compilescope.report.render.markdown import to_markdown
    from compilescope.report.render.terminal import to_text

    document = report_document(reading)
    if form == "md":
        sys.stdout.write(to_markdown(document))
    else:
        text = to_text(document, width=report_width(), colour=has_colour(sys.stdout))
        sys.stdout.write(text)
