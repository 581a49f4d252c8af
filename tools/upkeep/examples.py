"""The examples of graph breaks: each breaks as it claims, and what `explain` prints for it is on
record."""

from __future__ import annotations

import click

from compilescope.apps.cli.options import write_whole
from compilescope.base.errors import ToolError
from compilescope.knowledge.registry import cases
from compilescope.knowledge.registry.table import normal_id
from upkeep.example_runs import run_example


@click.command("examples", short_help="Run the examples and check what they claim.")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--write", is_flag=True, help="Save what explain prints for each.")
def COMMAND(ids: tuple[str, ...], write: bool) -> int:
    """Run the examples, or those of IDs (GB0124, gb124 or 124), and check: right ID, right line,
    fixed form.

    Exit status: 0 success, 1 an example did not behave as described.
    """
    known = cases.load_examples()
    wanted = [normal_id(each) or each for each in ids] or sorted(known)
    missing = [each for each in wanted if each not in known]
    if missing:
        raise ToolError(f"There is no example for {', '.join(missing)}.")
    good = fixed = 0
    for gb_id in wanted:
        result = run_example(known[gb_id])
        good, fixed = good + result.verified, fixed + result.compared
        for problem in result.problems:
            print(f"{gb_id}  {problem}", flush=True)
        if write and result.verified:
            path = cases.EXAMPLES / "outputs" / f"{gb_id.lower()}.txt"
            path.parent.mkdir(exist_ok=True)
            write_whole(path, result.output)
    print(
        f"{good} of {len(wanted)} examples behave as described, {fixed} with an equivalent "
        "fixed form."
    )
    return 0 if good == len(wanted) else 1
