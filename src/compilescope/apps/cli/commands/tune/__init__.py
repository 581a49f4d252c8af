"""`compilescope tune`: what makes a step faster, each candidate proven before it is offered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import click

from compilescope.apps.cli.options import (
    budget_option,
    delivery_options,
    dir_option,
    json_option,
    limit_option,
    python_option,
)
from compilescope.apps.cli.output import all_option
from compilescope.apps.cli.program import (
    ProgramCommand,
    Words,
    script_options,
    torchrun_option,
    verdict_of,
)
from compilescope.apps.cli.progress import ended_in_order

GROUP = "Fix"


class _TuneCommand(ProgramCommand):
    takes_stdin = False
    # Not --output, --step and --limit, which many a training script has itself.
    may_follow = frozenset({"write", "force", "script", "only", "lower_precision", "as_json"})

    headings: ClassVar[dict[str, tuple[str, ...]]] = {
        "What to write": ("write", "script", "output", "force"),
        "What to try": ("step", "only", "lower_precision"),
        "Time": ("budget", "limit", "jobs"),
    }

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        others = ("-m MODULE [ARGS]...", "--torchrun [ARGS]...", "--list")
        for rest in ("SCRIPT [ARGS]...", *others):
            prefix = None if rest.startswith("SCRIPT") else "       "
            formatter.write_usage("compilescope tune", f"[OPTIONS] {rest}", prefix=prefix)


@click.command(
    "tune",
    cls=_TuneCommand,
    short_help="Find what makes a compiled program's step faster, verified by measuring it.",
    help="Run a program and try what may make its step faster: compile modes, flags, optimizers, "
    "layouts. Each candidate runs in processes of its own, by turns with the original. It is "
    "offered if it is faster in two independent measurements and computes the same numbers. No "
    "file is changed without --write or --script.\n\n"
    "Everything after SCRIPT, -m, -c or --torchrun belongs to the program, except --write, "
    "--script, --force, --only, --lower-precision and --json, which may follow it. Everything "
    "after -- belongs to the program. The program runs many times: each run gets the same piped "
    "input, and its output is not shown.\n\n"
    "Exit status: 0 if a candidate is verified, 1 if none is, 2 if the search could not run, 130 "
    "if it was stopped by Ctrl-C.",
)
@click.option(
    "--step", metavar="FILE:FUNCTION", help="A call of this function is a step; else it is found."
)
@click.option(
    "--only", multiple=True, metavar="NAME", help="Only try this candidate; may be repeated."
)
@click.option(
    "--lower-precision",
    is_flag=True,
    help="Candidates that change numbers on purpose (TF32, bfloat16) may be part of the result.",
)
@click.option("--write", is_flag=True, help="Change your own files.")
@click.option("--script", is_flag=True, help="Write SCRIPT_fixed.py: the same program, tuned.")
@delivery_options
@click.option("--list", "repertoire", is_flag=True, help="List all candidates.")
@limit_option("one process to compile and settle", 600.0)
@budget_option("the whole search", "What is verified by then is shown.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Versions that compile at the same time. Default: a quarter of the cores.",
)
@script_options
@torchrun_option
@all_option
@python_option
@dir_option
@json_option
@click.pass_obj
def COMMAND(words: Words, /, **given: Any) -> int:
    return verdict_of(lambda: _done(words, given))


def _done(words: Words, given: dict[str, Any]) -> int:
    with ended_in_order(pausing=True):
        return _list(given) if given["repertoire"] else _tune(words, given)


def _list(given: dict[str, Any]) -> int:
    from compilescope.apps.cli.commands.tune.output import list_candidates

    list_candidates(as_json=given["as_json"], everything=given["everything"])
    return 0


def _tune(words: Words, given: dict[str, Any]) -> int:
    from compilescope.apps.cli.commands.fix.options import read_stdin
    from compilescope.apps.cli.commands.tune.output import deliver, read_request, tell
    from compilescope.apps.cli.isolation import announce
    from compilescope.apps.cli.progress import working
    from compilescope.change.repair.delivery.stored_fix import check_git
    from compilescope.change.tune.search import tune

    request = read_request(words, given)
    if request.write and not request.force:
        check_git([request.main])
    stdin = read_stdin()
    with working("tune") as work:
        options = replace(request.options, stdin=stdin, progress=work.show, tell=work.tell)
        announce("tune", offered=False)
        result = tune(request.target, options)
        delivery = deliver(replace(request, options=options), result)
    found = result.outcome.verdict == "verified"
    code = 130 if result.interrupted else 0 if found and not delivery.problem else 1
    tell(result, request, delivery, as_json=given["as_json"])
    return code
