"""`compilescope minify`: the smallest program that still shows it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from compilescope.cli.options import json_option
from compilescope.cli.program import ProgramCommand, Words
from compilescope.errors import ToolError


class _MinifyCommand(ProgramCommand):
    may_follow = frozenset(
        {
            "predicate",
            "site",
            "output",
            "jobs",
            "resume",
            "limit_time",
            "candidate_time",
            "check",
            "device",
            "test_backend",
            "as_json",
        }
    )

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for rest in ("SCRIPT [ARGS]...", "-m MODULE [ARGS]...", "--check COMMAND FILE"):
            first = rest.startswith("SCRIPT")
            prefix = None if first else "       "
            formatter.write_usage("compilescope minify", f"[OPTIONS] {rest}", prefix=prefix)


@click.command(
    "minify",
    cls=_MinifyCommand,
    short_help="Make the smallest program that still shows a break, a recompile or a crash.",
    help="Run a program, and make it smaller for as long as it shows the same cause: a graph break "
    "or a recompile (its source shrinks), a difference or a violation (its graph does), a crash "
    "(its graph where one is to blame, else its source). "
    "The repro is one script that needs no compilescope; it is written once it has shown the same "
    "in a fresh process. It exits with 1 while the bug is there and with 0 once it is gone.\n\n"
    "With --check any file shrinks while COMMAND, called with the candidate's path, leaves with "
    "status 0. Ctrl-C keeps the best so far; --resume goes on from there.\n\n"
    "Exit status: 0 a repro was written, 2 there is none, 130 stopped by Ctrl-C.",
)
@click.option("-m", "_m", is_flag=True, help="A module of yours.")
@click.option("-c", "_c", is_flag=True, help="A string of Python.")
@click.option(
    "--predicate",
    type=click.Choice(["break", "recompile", "crash", "diff", "violation"]),
    help="What must stay. [default: the crash that ended the program, else its first cause]",
)
@click.option("--site", metavar="FILE:LINE", help="Where, if the program shows several.")
@click.option("--check", metavar="COMMAND", help="Any command instead: status 0 keeps a candidate.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The repro. [default: repro.py, or with --check the file's name with .min in it]",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Candidates to try at the same time. The result does not depend on it.",
)
@click.option("--resume", is_flag=True, help="Go on with one that was stopped.")
@click.option("--limit-time", metavar="TIME", help="Stop after so long: seconds, 10m, 1h.")
@click.option(
    "--candidate-time",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    help="The longest that a candidate may run. [default: by the whole program's time]",
)
@click.option("--device", metavar="NAME", help="For violation: a device by name, or its file.")
@click.option("--test-backend", metavar="BACKEND", help="For crash and diff: the backend to try.")
@json_option
@click.pass_obj
def COMMAND(target: Words, /, **given: Any) -> int:
    from compilescope.cli.minify_check import minify_by_check
    from compilescope.cli.minify_source import minify_program
    from compilescope.cli.minifying import read_seconds

    kind, words = target
    if not words:
        raise ToolError(
            "There is nothing to minify.", hint="Try `compilescope minify script.py`, or -m MODULE."
        )
    if kind not in ("script", "module", "code"):
        raise ToolError("minify takes a script, -m MODULE or -c CODE.")
    given["limit_s"] = read_seconds(given["limit_time"])
    _check_options(given)
    if kind == "script" and not Path(words[0]).exists():
        raise ToolError(f"There is no file {words[0]}.")
    output = _output(kind, words, given)
    output.check(resume=given["resume"])
    if given["check"] is not None:
        if kind != "script" or len(words) > 1:
            raise ToolError("--check takes one file.")
        return minify_by_check(Path(words[0]), output, given)
    return minify_program(kind, words, output, given)


def _check_options(given: dict[str, Any]) -> None:
    if given["check"] is not None and (given["predicate"] or given["site"]):
        raise ToolError("Give --check or --predicate and --site, not both.")
    if given["device"] and given["predicate"] not in (None, "violation"):
        raise ToolError("--device goes with --predicate violation.")
    if given["predicate"] == "violation" and not given["device"]:
        raise ToolError("--predicate violation needs --device NAME.")
    if sys.platform == "win32":
        raise ToolError("minify needs a POSIX system.")


def _output(kind: str, words: tuple[str, ...], given: dict[str, Any]) -> Any:
    from compilescope.cli.minifying import Output

    if given["output"] is not None:
        return Output(given["output"], given=True)
    if given["check"] is not None:
        file = Path(words[0])
        return Output(Path(f"{file.stem}.min{file.suffix}"), given=True)
    return Output(Path("repro.py"), given=False)
