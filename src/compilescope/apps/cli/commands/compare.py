"""`compilescope compare`: two runs side by side."""

from __future__ import annotations

import shlex
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
from compilescope.apps.cli.output import all_option, tell
from compilescope.apps.cli.streams import put

if TYPE_CHECKING:
    from compilescope.report.comparison import ComparedRun

GROUP = "Diagnose"


@click.command("compare", short_help="Compare two runs: new, moved and resolved causes.")
@click.argument("before", metavar="RUN_A", type=RUN_NAME)
@click.argument("after", metavar="RUN_B", type=RUN_NAME)
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
    from compilescope.report.comparison import compare_runs

    sides = [_read(home_folder(home), name) for name in (before, after)]
    seen, document = compare_runs(*sides)
    if as_json:
        print_json(_value(seen))
        return
    if form == "md":
        from compilescope.report.render.markdown import to_markdown

        put(to_markdown(document))
    elif form == "html":
        from compilescope.report.render.page import to_page

        put(to_page([document]))
    else:
        rest = shlex.join(["compilescope", "compare", "--all", *in_home(home), before, after])
        tell(document, rest, everything=everything)


def _read(home: Path, name: str) -> ComparedRun:
    from compilescope.record.home import find_run
    from compilescope.report.comparison import read_side, split_rank

    run, rank = split_rank(name)
    return read_side(find_run(home, run if rank is None else run or None), rank)


def _value(seen: Any) -> Any:
    """As JSON; a record leaves out what is as usual, here a reader finds it."""
    from compilescope.apps.cli.run_json import changes_value, comparison_value, run_comparison_value
    from compilescope.knowledge.analysis.benchmark_changes import BenchmarkComparison
    from compilescope.knowledge.analysis.sweeps import Regressions

    if isinstance(seen, Regressions):
        return changes_value(seen)
    if isinstance(seen, BenchmarkComparison):
        return comparison_value(seen)
    return run_comparison_value(seen)
