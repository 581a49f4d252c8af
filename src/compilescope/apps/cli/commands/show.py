"""`compilescope show`: what a run lost and where to start; everything, or one section of it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.apps.cli.options import (
    RUN_NAME,
    dir_option,
    home_folder,
    in_home,
    json_option,
    print_json,
)
from compilescope.apps.cli.output import all_option, room, tell, with_one_cause
from compilescope.apps.cli.streams import leave, put
from compilescope.apps.cli.sweep_jobs import found_run, job_option, shown_value
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.record.run import Run
    from compilescope.report.blocks import Document

GROUP = "Diagnose"


@click.command("show", short_help="Show what a run lost and where to start.")
@click.argument("run", required=False, type=RUN_NAME)
@click.option(
    "--section",
    metavar="NAME",
    help="Show one section in detail: guards, graphs, constraints, tree, timeline, breaks, ...",
)
@job_option
@all_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "md", "json"]),
    default="terminal",
    help="Output format.",
)
@json_option
@dir_option
def COMMAND(
    run: str | None,
    section: str | None,
    job: str | None,
    everything: bool,
    form: str,
    as_json: bool,
    home: Path | None,
) -> None:
    """Show what a run lost and where to start: the latest run, or RUN by its id, the start of its
    id, or its folder.

    Fits two screens. --all prints the full report; --section NAME prints one section of it.
    """
    from compilescope.record.run import read_run

    folder = found_run(home_folder(home), run, job)
    run = str(folder) if job else run
    recorded = read_run(folder)
    form = "json" if as_json else form
    rest = ["compilescope", "show", "--all", *in_home(home)]
    name = [] if run is None else [run]
    if section is not None:
        words = shlex.join([*rest, "--section", section, *name])
        _section(recorded, section, form, "" if everything else words)
        return
    from compilescope.apps.cli.report_formats import draw, markdown
    from compilescope.report.document import report_document
    from compilescope.report.section import Reading

    reading = Reading(recorded)
    if form == "json":
        print_json(shown_value(reading))
    elif everything:
        put(draw([recorded], form, to_file=False))
    elif form == "md":
        put(markdown(report_document(reading)))
    else:
        one = ["compilescope", "explain", *in_home(home), *name, "--cause"]
        reading = Reading(
            recorded,
            drawn=room(sys.stdout),
            explain=lambda number: shlex.join([*one, str(number)]),
        )
        document = report_document(reading)
        if not reading.digest.jobs:
            document = with_one_cause(reading, document, lambda n: shlex.join([*one, n]))
        tell(document, shlex.join([*rest, *name]))
    # From here, where the run is still held: to take a long one apart would take as long as to
    # draw it.
    leave(0)


def _section(recorded: Run, section: str, form: str, rest: str) -> None:
    from compilescope.apps.cli.report_formats import markdown

    value, document = section_of(recorded, section)
    if form == "json":
        print_json(value)
    elif form == "md":
        put(markdown(document))
    else:
        tell(document, rest)


DETAILED = ("guards", "graphs", "constraints")
"""Sections that show more here than in the report."""


def section_of(run: Run, name: str) -> tuple[Any, Document]:
    """Its JSON and its document."""
    title, root = f"compilescope {run.header.run}", run.header.root
    head = {"run": run.header.run, "type": name}
    if name == "guards":
        from compilescope.knowledge.analysis.dynamo_graphs import break_reasons, graph_count
        from compilescope.knowledge.analysis.guarded_graphs import guarded_graphs
        from compilescope.report.guards import guards_document

        guarded, breaks, number = guarded_graphs(run), break_reasons(run), graph_count(run)
        counts = {"graph_count": number, "graph_break_count": len(breaks)}
        value = {**head, **counts, "break_reasons": breaks, "graphs": guarded}
        return value, guards_document(title, guarded, root, breaks, number)
    if name == "graphs":
        from compilescope.knowledge.analysis.dynamo_graphs import captured_graphs
        from compilescope.report.guards import graphs_document

        captured = captured_graphs(run)
        return {**head, "graphs": captured}, graphs_document(title, captured, root)
    from compilescope.report.section import Reading

    if name == "constraints":
        from compilescope.knowledge.analysis.json_form import recorded_violation_json
        from compilescope.knowledge.findings.violations import violations
        from compilescope.report.sections.violations import violations_document

        reading = Reading(run)
        found = [recorded_violation_json(each) for each in violations(run)]
        value = {**head, "check": reading.digest.constraints, "violations": found}
        return value, violations_document(title, reading)
    document = _of_report(Reading(run, full=True), name)
    return {**head, "sections": document.parts}, document


def _of_report(reading: Any, name: str) -> Document:
    from compilescope.report.blocks import Document, Paragraph, Part, words
    from compilescope.report.document import all_sections, report_document

    known = [section.id for section in all_sections() if section.id != "causes"]
    if name not in known:
        names = ", ".join(dict.fromkeys([*DETAILED, *known]))
        raise ToolError(f"There is no section {name}.", hint=f"The sections: {names}.")
    document = report_document(reading, only=name)
    if document.parts:
        return document
    nothing = Paragraph(words(f"This run has nothing to show under {name}."))
    return Document(document.title, document.subtitle, (Part(name, "", (nothing,)),))
