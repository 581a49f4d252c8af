"""`compilescope verify`: does anybody's change keep what a program does, and what does it lose?"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import click

from compilescope.apps.cli.options import (
    RUN_LIMIT_S,
    budget_option,
    dir_option,
    force_option,
    isolated_option,
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

GROUP = "Gate"
_FILE = click.Path(path_type=Path)
FORMATS = ("terminal", "md", "sarif", "json")


class _VerifyCommand(ProgramCommand):
    takes_stdin = False
    # Not --output and --limit, which many a training script has itself.
    may_follow = frozenset({"against", "patch", "git", "timed", "isolated", "as_json", "form"})

    headings: ClassVar[dict[str, tuple[str, ...]]] = {
        "The change": ("against", "patch", "git"),
        "What to write": ("form", "output", "force"),
        "Time": ("budget", "limit", "timed"),
    }

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        name = "compilescope verify"
        formatter.write_usage(name, "[OPTIONS] SCRIPT [ARGS]... --against FILE")
        for rest in ("SCRIPT [ARGS]... --patch DIFF", "-m MODULE [ARGS]... --git REV"):
            formatter.write_usage(name, f"[OPTIONS] {rest}", prefix="       ")


@click.command(
    "verify",
    cls=_VerifyCommand,
    short_help="Check a change: does the program do the same, and what gets worse?",
    help="Run two versions of a program and compare them: results, gradients, state and printed "
    "output, on the inputs of the program and on others (zeros, NaN, infinities, other values). "
    "No file is changed: the other version's text takes the place of the file's while the program "
    "runs.\n\n"
    "The answer is `verified` (it does the same, and nothing gets worse), `changed` (what differs, "
    "and on which input), `worse` (it does the same, but with new causes, or slower) or `unknown` "
    "(why that could not be determined).\n\n"
    "Everything after SCRIPT, -m, -c or --torchrun belongs to the program, except --against, "
    "--patch, --git, --isolated, --no-time, --format and --json, which may follow it. Everything "
    "after -- belongs to the program. The program runs many times: each run gets the same piped "
    "input, and its output is not shown.\n\n"
    "Exit status: 0 verified, 1 changed or worse, 2 unknown or an error.",
)
@click.option(
    "--against", type=_FILE, metavar="FILE", help="The other version: FILE in place of SCRIPT."
)
@click.option(
    "--patch",
    type=_FILE,
    metavar="DIFF",
    help="The other version: this unified diff applied; - reads it from a pipe.",
)
@click.option(
    "--git",
    metavar="REV[..REV]",
    help="The working tree compared with a commit, or two commits with each other.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Output format. [default: by the suffix of --output, or terminal]",
)
@click.option("--output", type=_FILE, metavar="FILE", help="Write the answer to FILE.")
@force_option
@limit_option("one run of the program", RUN_LIMIT_S)
@budget_option("the whole comparison", "What could not be compared by then is unknown.")
@isolated_option
@click.option("--no-time", "timed", flag_value=False, default=True, help="Do not time both.")
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
    from compilescope.apps.cli.commands.verify.output import deliver
    from compilescope.apps.cli.commands.verify.request import read_request, verified

    with ended_in_order(pausing=True):
        request = read_request(words, given)
        return deliver(verified(request), request)
