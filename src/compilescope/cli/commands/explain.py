"""`compilescope explain`: why each break and recompile happened, and what to change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compilescope.cli.options import (
    dir_option,
    has_colour,
    home_folder,
    json_option,
    print_json,
    registry_pages,
    report_width,
)

if TYPE_CHECKING:
    from compilescope.model.run import Run
    from compilescope.rules.digest import Digest
    from compilescope.rules.sites import Site


@click.command("explain", short_help="Explain what was lost, and what to change.")
@click.argument("run", required=False)
@click.option("--break", "number", type=click.IntRange(min=1), metavar="N", help="Only break N.")
@click.option("--site", metavar="FILE:LINE", help="Only breaks at this place.")
@click.option("--llm", is_flag=True, help="Add the words of a language model, marked as such.")
@click.option(
    "--llm-dry-run", is_flag=True, help="Show exactly what --llm would send; send nothing."
)
@json_option
@dir_option
def COMMAND(
    run: str | None,
    number: int | None,
    site: str | None,
    llm: bool,
    llm_dry_run: bool,
    as_json: bool,
    home: Path | None,
) -> None:
    """Explain what was lost in RUN (the latest by default), most costly first."""
    from compilescope.model.home import find_run
    from compilescope.model.run import read_run
    from compilescope.report.section import Reading

    recorded = read_run(find_run(home_folder(home), run))
    reading = Reading(recorded, pages=registry_pages())
    record, seen = reading.run, reading.digest
    chosen = _choose(seen, number, site)
    if llm_dry_run:
        _show_prompts(record, seen, chosen)
        return
    replies = _ask(record, seen, chosen) if llm else {}
    whole = number is None and site is None
    if as_json:
        _print_json(seen, chosen, whole, replies)
        return
    from compilescope.report.explanation import explanation
    from compilescope.report.render.terminal import to_text

    document = explanation(reading, chosen, with_rest=whole)
    sys.stdout.write(to_text(document, width=report_width(), colour=has_colour(sys.stdout)))
    for fingerprint, words in replies.items():
        label = next(n for n, s in chosen if s.fingerprint == fingerprint)
        sys.stdout.write(f"\nA language model says of break {label}:\n{words}\n")


def _choose(seen: Digest, number: int | None, place: str | None) -> list[tuple[int, Site]]:
    from compilescope.errors import ToolError

    sites = list(enumerate(seen.sites, 1))
    if number is not None:
        if number > len(sites):
            raise ToolError(
                f"There is no break {number}: the run has {len(sites)}.",
                hint="`compilescope show` numbers them.",
            )
        return [sites[number - 1]]
    if place is None:
        return sites
    file, colon, line = place.rpartition(":")
    if not colon or not line.isdigit():
        raise ToolError(f"--site wants FILE:LINE, not {place!r}.")
    found = [(n, s) for n, s in sites if s.line == int(line) and s.file.endswith(file)]
    if not found:
        raise ToolError(f"No break at {place}.", hint="`compilescope show` lists the places.")
    return found


def _print_json(
    seen: Digest, chosen: list[tuple[int, Site]], whole: bool, replies: dict[str, str]
) -> None:
    print_json(
        {
            "run": seen.run,
            "torch": seen.torch,
            "ended": seen.ended,
            "coverage": seen.coverage,
            "sites": [site for _, site in chosen],
            "recompiles": seen.recompiles if whole else [],
            "failures": seen.failures if whole else [],
            "eager_frames": seen.eager_frames if whole else [],
            "llm": replies,
        }
    )


def _show_prompts(record: Run, seen: Digest, chosen: list[tuple[int, Site]]) -> None:
    from compilescope.explain.llm import prompt_for
    from compilescope.explain.question import question_for

    for number, site in chosen:
        for message in prompt_for(question_for(record, seen, site)):
            print(f"--- break {number}, {message['role']} message\n{message['content']}")
    if not chosen:
        print("There is no break to ask about: nothing would be sent.", file=sys.stderr)


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
            print(f"compilescope: no words from a model: {reply.problem}", file=sys.stderr)
            break
        replies[site.fingerprint] = reply.words
    return replies
