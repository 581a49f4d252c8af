"""`compilescope explain`: why each cause is one, and what to change."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.apps.cli.llm import LlmOptions, ask_model, llm_options, show_requests
from compilescope.apps.cli.options import (
    RUN_NAME,
    dir_option,
    home_folder,
    in_home,
    json_option,
    print_json,
    registry_pages,
    report_width,
)
from compilescope.apps.cli.output import all_option, lines_at, room, tell
from compilescope.apps.cli.streams import put
from compilescope.apps.cli.sweep_jobs import found_run, job_option
from compilescope.base.texts import whole_number

if TYPE_CHECKING:
    from compilescope.knowledge.findings.breaks import BreakFinding
    from compilescope.knowledge.findings.finding import Finding
    from compilescope.report.blocks import Document
    from compilescope.report.section import Reading

GROUP = "Diagnose"


@click.command("explain", short_help="Explain every cause: why it happens and what to change.")
@click.argument("run", required=False, type=RUN_NAME)
@click.option(
    "--cause", type=click.IntRange(min=1), metavar="N", help="Only cause N of `compilescope show`."
)
@click.option("--break", "number", type=click.IntRange(min=1), metavar="N", help="Only break N.")
@click.option("--site", metavar="FILE:LINE", help="Only the graph breaks at this line.")
@job_option
@all_option
@llm_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "md", "html"]),
    default="terminal",
    help="Output format.",
)
@json_option
@dir_option
def COMMAND(
    run: str | None,
    cause: int | None,
    number: int | None,
    site: str | None,
    job: str | None,
    everything: bool,
    form: str,
    as_json: bool,
    home: Path | None,
    **llm_given: Any,
) -> None:
    """Explain the causes in RUN (default: the latest), most expensive first: why each happens and
    what to change.

    Shows as many in full as fit two screens, and lists the others. With --llm or another format it
    shows all of them.
    """
    from msgspec.structs import replace

    from compilescope.base.errors import ToolError
    from compilescope.record.run import read_run
    from compilescope.report.section import Reading

    if sum(given is not None for given in (cause, number, site)) > 1:
        raise ToolError("--cause, --break and --site do not go together: give one of them.")
    wanted = LlmOptions(**llm_given)
    folder = found_run(home_folder(home), run, job)
    run = str(folder) if job else run
    reading = Reading(read_run(folder), page=form == "html", pages=registry_pages())
    brief = not (as_json or everything or wanted.llm or wanted.llm_dry_run) and form == "terminal"
    if brief and number is None and site is None:
        # Others have room only where no cause was asked for.
        reading = replace(reading, drawn=room(sys.stdout) if cause is None else 0)
    reading = replace(reading, only=cause)
    numbers = _numbers(reading, cause)
    by_place = number is not None or site is not None
    chosen = _choose(reading, numbers, number, site)
    asked = _asked(reading, numbers, chosen if by_place else None)
    if wanted.llm_dry_run:
        noun = "break" if by_place else "cause"
        show_requests(wanted, [(reading, asked)], noun=noun, as_json=as_json)
        return
    if wanted.llm:
        reading = replace(reading, quotes=ask_model(wanted, reading, asked))
    if as_json:
        _print_json(reading, [] if by_place else numbers, chosen)
        return
    if by_place:
        from compilescope.report.explanation import break_explanation

        _print(break_explanation(reading, chosen), form)
    elif everything or cause is not None or wanted.llm or form != "terminal":
        from compilescope.report.explanation import explanation

        _print(explanation(reading, numbers), form)
    else:
        from compilescope.report.explanation import fitted_explanation

        measure, most = lines_at(report_width()), room(sys.stdout)
        command = ["compilescope", "explain", *in_home(home), *([run] if run else [])]
        one, rest = (shlex.join([*command, option]) for option in ("--cause", "--all"))
        tell(fitted_explanation(reading, most, measure, one, rest), "")


def _print(document: Document, form: str) -> None:
    if form == "md":
        from compilescope.report.render.markdown import to_markdown

        put(to_markdown(document))
    elif form == "html":
        from compilescope.report.render.page import to_page

        put(to_page([document]))
    else:
        tell(document, "")


def _asked(
    reading: Reading, numbers: list[int], sites: list[tuple[int, BreakFinding]] | None
) -> list[tuple[int, Finding]]:
    """The causes that a model is asked about with their numbers; or these breaks with theirs."""
    if sites is None:
        return [(number, reading.causes[number - 1]) for number in numbers]
    breaks = {each.fingerprint: each for each in reading.causes if each.kind == "break"}
    # Two breaks of the same line are one cause.
    numbered = {site.fingerprint: number for number, site in reversed(sites)}
    return [(number, breaks[name]) for name, number in reversed(numbered.items())]


def _numbers(reading: Reading, cause: int | None) -> list[int]:
    """Of the causes to explain."""
    from compilescope.base.errors import ToolError

    total = len(reading.causes)
    if cause is not None and cause > total:
        raise ToolError(
            f"There is no cause {cause}: the run has {total}.",
            hint="`compilescope show` numbers them.",
        )
    return list(range(1, total + 1)) if cause is None else [cause]


def _choose(
    reading: Reading, numbers: list[int], number: int | None, place: str | None
) -> list[tuple[int, BreakFinding]]:
    """The graph breaks among these causes, or the one of this number, or those at this place."""
    from compilescope.base.errors import ToolError

    sites = list(enumerate(reading.digest.sites, 1))
    if number is not None:
        if number > len(sites):
            raise ToolError(
                f"There is no break {number}: the run has {len(sites)}.",
                hint="`compilescope show --section breaks` numbers them.",
            )
        return [sites[number - 1]]
    if place is None:
        wanted = {reading.causes[each - 1].fingerprint for each in numbers}
        return [(n, s) for n, s in sites if s.fingerprint in wanted]
    file, colon, line = place.rpartition(":")
    at = whole_number(line)
    if not colon or at is None:
        raise ToolError(f"--site takes FILE:LINE, not {place!r}.")
    found = [(n, s) for n, s in sites if s.line == at and s.file.endswith(file)]
    if not found:
        raise ToolError(f"No graph break at {place}.", hint="`compilescope show` lists the places.")
    return found


def _print_json(
    reading: Reading, numbers: list[int], chosen: list[tuple[int, BreakFinding]]
) -> None:
    from compilescope.knowledge.analysis.json_form import (
        eager_json,
        failure_json,
        recompiled_json,
        site_json,
    )

    seen = reading.digest
    behind = {event for each in numbers for event in reading.causes[each - 1].because}
    # A function that is eager because of a break or a failure is no cause of its own.
    whole = len(numbers) == len(reading.causes)
    eager = seen.eager_frames if whole else _behind(seen.eager_frames, behind)
    print_json(
        {
            "run": seen.run,
            "torch": seen.torch,
            "ended": seen.ended,
            "coverage": seen.coverage,
            "sites": [site_json(site) for _, site in chosen],
            "recompiles": [recompiled_json(each) for each in _behind(seen.recompiles, behind)],
            "failures": [failure_json(each) for each in _behind(seen.failures, behind)],
            "eager_frames": [eager_json(each) for each in eager],
            "llm": {name: quote.text for name, quote in reading.quotes.items()},
        }
    )


def _behind(found: Iterable[Any], events: set[str]) -> list[Any]:
    return [each for each in found if events.intersection(each.because)]
