"""`compilescope compare`: two runs side by side."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compilescope.cli.benchmark_values import compared_benchmarks
from compilescope.cli.options import dir_option, home_folder, in_home, json_option, print_json
from compilescope.cli.sweep_jobs import compared_sweeps
from compilescope.cli.telling import all_option, tell
from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.model.run import Run

GROUP = "Diagnose"

_OF_RANK = re.compile(r"^(?P<run>.*)@(?P<rank>\d+)$")


@click.command("compare", short_help="Compare two runs: new, moved and resolved causes.")
@click.argument("before", metavar="RUN_A")
@click.argument("after", metavar="RUN_B")
@click.option(
    "--format", "form", type=click.Choice(["terminal", "md", "html"]), help="Output format."
)
@all_option
@json_option
@dir_option
def COMMAND(
    before: str,
    after: str,
    form: str | None,
    everything: bool,
    as_json: bool,
    home: Path | None,
) -> None:
    """Show what changed from RUN_A to RUN_B: new, moved and resolved causes, and the figures of
    both.

    RUN@1 is rank 1 of a run: `compare RUN@0 RUN@1` compares two ranks. Of two benchmark runs, it
    says which differences are real: it compares intervals, with eager mode as the control.
    """
    from compilescope.rules.comparison import compare
    from compilescope.rules.digest import digest

    runs, names = zip(*(_read(home_folder(home), name) for name in (before, after)), strict=True)
    special = compared_sweeps(*runs) or compared_benchmarks(runs[0], runs[1], (names[0], names[1]))
    if special is not None:
        value, document = special
    else:
        from compilescope.report.comparison import comparison_document

        value = compare(digest(runs[0]), digest(runs[1]), names)
        document = comparison_document(value, (runs[0].header.root, runs[1].header.root))
    if as_json:
        print_json(value)
        return
    if form == "md":
        from compilescope.report.render.markdown import to_markdown

        sys.stdout.write(to_markdown(document))
    elif form == "html":
        from compilescope.report.render.page import to_page

        sys.stdout.write(to_page([document]))
    else:
        rest = shlex.join(["compilescope", "compare", "--all", *in_home(home), before, after])
        tell(document, rest, everything=everything)


def _read(home: Path, name: str) -> tuple[Run, str]:
    """A run, or one rank of it, and what to call it."""
    from compilescope.model.home import find_run
    from compilescope.model.run import read_run

    match = _OF_RANK.match(name)
    if match is None:
        run = read_run(find_run(home, name))
        return run, run.header.run
    rank = int(match["rank"])
    whole = read_run(find_run(home, match["run"] or None))
    ranks = sorted({event.rank for event in whole.events})
    if rank not in ranks:
        there = ", ".join(map(str, ranks)) or "none"
        raise ToolError(f"{whole.header.run} has no rank {rank}. Its ranks: {there}.")
    run = whole.narrowed(lambda event: event.rank == rank)
    return run, f"{whole.header.run}@{rank}"
