"""`compilescope report`: the whole story of one run or several, in a file to share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.apps.cli.llm import LlmOptions, ask_model, llm_options, show_requests
from compilescope.apps.cli.options import (
    RUN_NAME,
    dir_option,
    force_option,
    home_folder,
    write_whole,
)
from compilescope.apps.cli.progress import working
from compilescope.apps.cli.report_formats import FORMATS, draw, format_of
from compilescope.apps.cli.streams import any_encoding, put
from compilescope.apps.cli.sweep_jobs import found_run, job_option
from compilescope.base.errors import ToolError
from compilescope.base.outputs import check_output, is_report
from compilescope.base.texts import file_stem

if TYPE_CHECKING:
    from compilescope.knowledge.findings.finding import Finding
    from compilescope.record.run import Run
    from compilescope.report.section import Reading

GROUP = "Share"


@click.command(
    "report", short_help="Write a report to share: HTML, markdown, JSON, SARIF or a trace."
)
@click.argument("runs", metavar="[RUN]...", nargs=-1, type=RUN_NAME)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Output format; trace is a timeline for Perfetto. [default: by FILE's suffix, or html]",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="The file to write."
)
@force_option
@click.option("--all", "everything", is_flag=True, help="Report on all runs on disk.")
@click.option("--tag", metavar="TAG", help="Report on the runs with this tag.")
@job_option
@llm_options
@click.option("--open", "opened", is_flag=True, help="Open it in a browser.")
@dir_option
def COMMAND(
    runs: tuple[str, ...],
    form: str | None,
    output: Path | None,
    force: bool,
    everything: bool,
    tag: str | None,
    job: str | None,
    opened: bool,
    home: Path | None,
    **llm_given: Any,
) -> None:
    """Write the full report of each RUN, given by its id or the start of it (default: the latest).

    Several runs begin with what they come to: how many pass what was checked, the worst of each
    check, and where each program stands.

    Without -o it goes to stdout; HTML goes to a file named after the run if stdout is a terminal.
    Markdown is at most 60 KB, so that it fits a GitHub comment.
    """
    from compilescope.record.run import read_run
    from compilescope.record.run_files import note_product

    wanted = LlmOptions(**llm_given)
    form = form or (format_of(output) if output else None) or "html"
    if opened and form != "html":
        raise ToolError("--open works with HTML only.", hint="Drop --format or --open.")
    if output is not None:
        check_output(output, force=force, ours=is_report)
    folder = home_folder(home)
    if everything or tag is not None:
        if runs or job or (everything and tag is not None):
            raise ToolError("Give RUNs, --all or --tag, not several of them.")
        found = _all_runs(folder, tag)
    else:
        found = [found_run(folder, name, job) for name in runs or (None,)]
    with working("report", "reading the run"):
        read = [read_run(path) for path in dict.fromkeys(found)]
    if wanted.llm_dry_run:
        show_requests(wanted, map(_causes, read), as_json=form == "json")
        return
    quotes = [ask_model(wanted, *_causes(run)) for run in read] if wanted.llm else []
    if output is None and form == "html" and (opened or sys.stdout.isatty()):
        output = Path(f"{file_stem(read[0].header.run) or 'report'}.html")
        check_output(output, force=force, ours=is_report)
    with working("report", "writing the report"):
        text = draw(read, form, to_file=output is not None, quotes=quotes)
    if output is None:
        put(text if form in ("html", "md", "terminal") else any_encoding(text))
        return
    write_whole(output, text)
    for path in dict.fromkeys(found):
        note_product(path, "report", output)
    print(f"Wrote {output} ({len(text.encode()) / 1e6:.1f} MB).", file=sys.stderr)
    if opened:
        import webbrowser

        if not webbrowser.open(output.absolute().as_uri()):
            print(f"Could not start a browser; open {output} yourself.", file=sys.stderr)


def _causes(run: Run) -> tuple[Reading, list[tuple[int, Finding]]]:
    """All that a language model can be asked about."""
    from compilescope.report.section import Reading

    reading = Reading(run)
    return reading, list(enumerate(reading.causes, 1))


def _all_runs(folder: Path, tag: str | None) -> list[Path]:
    from compilescope.record.home import list_runs
    from compilescope.record.labels import tags_of

    runs, unreadable = list_runs(folder)
    for _path, why in unreadable:
        print(f"Left out: {why}", file=sys.stderr)
    found = [path for path, _ in runs if tag is None or tag in tags_of(path)]
    if not found:
        what = f"has the tag {tag!r}" if tag is not None else "is readable"
        raise ToolError(f"No run in {folder} {what}.", hint="`compilescope runs` lists them.")
    return found
