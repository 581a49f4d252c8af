"""`compilescope analyze`: one side of a recorded run in detail."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from compilescope.cli.options import (
    dir_option,
    has_colour,
    home_folder,
    json_option,
    print_json,
    report_width,
)


@click.command("analyze", short_help="Guards, graphs or constraints of a run in detail.")
@click.argument("run", required=False)
@click.option(
    "--type",
    "side",
    type=click.Choice(["guards", "graphs", "constraints", "summary"]),
    default="summary",
    help="What to look at. [default: summary]",
)
@json_option
@dir_option
def COMMAND(run: str | None, side: str, as_json: bool, home: Path | None) -> None:
    """Look at one side of a run: the latest, or RUN by its id, the start of its id, or its folder.

    guards: what every call checks, by kind and by the line of yours that asked for it.
    graphs: what Dynamo handed to the backend. constraints: what a backend's device refused while
    it ran; `preflight --run RUN --device NAME` judges its graphs anew. summary: what `show` prints.
    """
    from compilescope.model.home import find_run
    from compilescope.model.run import read_run
    from compilescope.report.render.terminal import to_text

    seen = read_run(find_run(home_folder(home), run))
    value, document = _look(seen, side)
    if as_json:
        print_json(value)
        return
    text = to_text(document, width=report_width(), colour=has_colour(sys.stdout))
    sys.stdout.write(text)


def _look(run: Any, side: str) -> tuple[Any, Any]:
    """The same side for machines and for people."""
    title, root = f"compilescope {run.header.run}", run.header.root
    if side == "guards":
        from compilescope.report.guards import guards_document
        from compilescope.rules.guarded import guarded_graphs

        guarded = guarded_graphs(run)
        value = {"run": run.header.run, "type": side, "graphs": guarded}
        return value, guards_document(title, guarded, root)
    if side == "graphs":
        from compilescope.report.guards import graphs_document
        from compilescope.rules.graphs.dynamo import captured_graphs

        captured = captured_graphs(run)
        value = {"run": run.header.run, "type": side, "graphs": captured}
        return value, graphs_document(title, captured, root)
    from compilescope.report.document import report_document
    from compilescope.report.section import Reading

    reading = Reading(run)
    if side == "constraints":
        from compilescope.report.sections.violations import violations_document
        from compilescope.rules.hardware.violations import recorded_violations

        found = recorded_violations(run)
        return {"run": run.header.run, "type": side, "violations": found}, violations_document(
            title, reading
        )
    return reading.digest, report_document(reading)
