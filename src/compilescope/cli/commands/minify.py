"""`compilescope minify`: the smallest program that still shows it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from compilescope.cli.options import json_option
from compilescope.cli.program import ProgramCommand, Words
from compilescope.errors import ToolError

GROUP = "Fix"


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
    short_help="Make the smallest program that still shows a graph break, recompile or crash.",
    help="Run a program and shrink it while it shows the same cause: the source for a graph "
    "break or a recompile, the graph for a numerical difference or a device violation, "
    "and for a crash the graph if one causes it, otherwise the source. The repro is one "
    "script that does not need compilescope; it is written once it has shown the same "
    "cause in a fresh process. It exits with 1 while the bug is present and with 0 once "
    "it is fixed.\n\n"
    "With --check, any file is shrunk while COMMAND, called with the "
    "candidate's path, exits with 0. Ctrl-C keeps the best so far; --resume continues "
    "from there.\n\n"
    "Exit status: 0 a repro was written, 2 no repro, 130 stopped by Ctrl-C.",
)
@click.option("-m", "_m", is_flag=True, help="Minify a module.")
@click.option("-c", "_c", is_flag=True, help="Minify a string of Python.")
@click.option(
    "--predicate",
    type=click.Choice(["break", "recompile", "crash", "diff", "violation"]),
    help=(
        "What the repro must show. [default: the crash that ended the program, else its first "
        "cause]"
    ),
)
@click.option("--site", metavar="FILE:LINE", help="Which one, if the program shows several.")
@click.option(
    "--check", metavar="COMMAND", help="Use this command instead: exit status 0 keeps a candidate."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The repro's file. [default: repro.py, or with --check FILE.min.SUFFIX]",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Candidates to try in parallel. The result does not depend on it.",
)
@click.option("--resume", is_flag=True, help="Continue a stopped minify.")
@click.option("--limit-time", metavar="TIME", help="Stop after this long: 90, 10m, 1h.")
@click.option(
    "--candidate-time",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    help="Time limit for one candidate. [default: based on the program's run time]",
)
@click.option("--device", metavar="NAME", help="For violation: a device name or file.")
@click.option("--test-backend", metavar="BACKEND", help="For crash and diff: the backend to test.")
@json_option
@click.pass_obj
def COMMAND(target: Words, /, **given: Any) -> int:
    from compilescope.cli.minify_check import minify_by_check
    from compilescope.cli.minify_source import minify_program
    from compilescope.cli.minifying import read_seconds

    kind, words = target
    if not words:
        raise ToolError(
            "No program given.", hint="Try `compilescope minify script.py`, or -m MODULE."
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
        raise ToolError("--device needs --predicate violation.")
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
