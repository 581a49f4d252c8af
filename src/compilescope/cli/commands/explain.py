"""`compilescope explain`: why each cause is one, and what to change."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.cli.options import (
    dir_option,
    home_folder,
    in_home,
    json_option,
    print_json,
    registry_pages,
    report_width,
)
from compilescope.cli.sweep_jobs import found_run, job_option
from compilescope.cli.telling import all_option, lines_at, room, tell

if TYPE_CHECKING:
    from compilescope.model.run import Run
    from compilescope.report.section import Reading
    from compilescope.rules.digest import Digest
    from compilescope.rules.sites import Site

GROUP = "Diagnose"


@click.command("explain", short_help="Explain every cause: why it happens and what to change.")
@click.argument("run", required=False)
@click.option(
    "--cause", type=click.IntRange(min=1), metavar="N", help="Only cause N of `compilescope show`."
)
@click.option("--break", "number", type=click.IntRange(min=1), metavar="N", help="Only break N.")
@click.option("--site", metavar="FILE:LINE", help="Only the graph breaks at this line.")
@job_option
@all_option
@click.option("--llm", is_flag=True, help="Add a language model's explanation, marked as such.")
@click.option(
    "--llm-dry-run", is_flag=True, help="Show exactly what --llm would send; send nothing."
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
    llm: bool,
    llm_dry_run: bool,
    as_json: bool,
    home: Path | None,
) -> None:
    """Explain the causes in RUN (default: the latest), most expensive first: why each happens and
    what to change.

    Shows as many in full as fit two screens, and lists the others.
    """
    from compilescope.errors import ToolError
    from compilescope.model.run import read_run
    from compilescope.report.section import Reading

    if sum(given is not None for given in (cause, number, site)) > 1:
        raise ToolError("--cause, --break and --site do not go together: give one of them.")
    folder = found_run(home_folder(home), run, job)
    run = str(folder) if job else run
    recorded = read_run(folder)
    reading = Reading(recorded, pages=registry_pages())
    record, seen = reading.run, reading.digest
    numbers = _numbers(reading, cause)
    chosen = _choose(reading, numbers, number, site)
    if llm_dry_run:
        _show_prompts(record, seen, chosen)
        return
    replies = _ask(record, seen, chosen) if llm else {}
    by_place = number is not None or site is not None
    if as_json:
        _print_json(reading, [] if by_place else numbers, chosen, replies)
        return
    if by_place:
        from compilescope.report.explanation import break_explanation

        tell(break_explanation(reading, chosen), "")
    elif everything or cause is not None:
        from compilescope.report.explanation import explanation

        tell(explanation(reading, numbers), "")
    else:
        from compilescope.report.explanation import fitted_explanation

        measure, most = lines_at(report_width()), room(sys.stdout)
        command = ["compilescope", "explain", *in_home(home), *([run] if run else [])]
        one, rest = (shlex.join([*command, option]) for option in ("--cause", "--all"))
        tell(fitted_explanation(reading, most, measure, one, rest), "")
    for fingerprint, words in replies.items():
        label = next(n for n, s in chosen if s.fingerprint == fingerprint)
        sys.stdout.write(f"\nA language model says of break {label}:\n{words}\n")


def _numbers(reading: Reading, cause: int | None) -> list[int]:
    """Of the causes to explain."""
    from compilescope.errors import ToolError

    total = len(reading.causes)
    if cause is not None and cause > total:
        raise ToolError(
            f"There is no cause {cause}: the run has {total}.",
            hint="`compilescope show` numbers them.",
        )
    return list(range(1, total + 1)) if cause is None else [cause]


def _choose(
    reading: Reading, numbers: list[int], number: int | None, place: str | None
) -> list[tuple[int, Site]]:
    """The graph breaks among these causes, or the one of this number, or those at this place."""
    from compilescope.errors import ToolError

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
    if not colon or not line.isdigit():
        raise ToolError(f"--site takes FILE:LINE, not {place!r}.")
    found = [(n, s) for n, s in sites if s.line == int(line) and s.file.endswith(file)]
    if not found:
        raise ToolError(f"No graph break at {place}.", hint="`compilescope show` lists the places.")
    return found


def _print_json(
    reading: Reading, numbers: list[int], chosen: list[tuple[int, Site]], replies: dict[str, str]
) -> None:
    seen = reading.digest
    behind = {event for each in numbers for event in reading.causes[each - 1].because}
    # A function that is eager because of a break or a failure is no cause of its own.
    whole = len(numbers) == len(reading.causes)
    print_json(
        {
            "run": seen.run,
            "torch": seen.torch,
            "ended": seen.ended,
            "coverage": seen.coverage,
            "sites": [site for _, site in chosen],
            "recompiles": _behind(seen.recompiles, behind),
            "failures": _behind(seen.failures, behind),
            "eager_frames": seen.eager_frames if whole else _behind(seen.eager_frames, behind),
            "llm": replies,
        }
    )


def _behind(found: Iterable[Any], events: set[str]) -> list[Any]:
    return [each for each in found if events.intersection(each.because)]


def _show_prompts(record: Run, seen: Digest, chosen: list[tuple[int, Site]]) -> None:
    from compilescope.explain.llm import prompt_for
    from compilescope.explain.question import question_for

    for number, site in chosen:
        for message in prompt_for(question_for(record, seen, site)):
            print(f"--- break {number}, {message['role']} message\n{message['content']}")
    if not chosen:
        print("There is no graph break to ask about: nothing would be sent.", file=sys.stderr)


def _ask(record: Run, seen: Digest, chosen: list[tuple[int, Site]]) -> dict[str, str]:
    """Fingerprint -> a model's words. A problem is one sentence on stderr, and ends the asking."""
    from compilescope.explain.llm import ask
    from compilescope.explain.question import question_for
    from compilescope.settings import read_model_settings

    settings = read_model_settings()
    replies: dict[str, str] = {}
    for number, site in chosen:
        print(f"asking about break {number} of {len(chosen)}...", file=sys.stderr)
        reply = ask(question_for(record, seen, site), settings)
        if reply.words is None:
            print(f"compilescope: no answer from the model: {reply.problem}", file=sys.stderr)
            break
        replies[site.fingerprint] = reply.words
    return replies
