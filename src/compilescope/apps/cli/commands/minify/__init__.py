"""`compilescope minify`: the smallest program that still shows the same problem."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, ClassVar

import click

from compilescope.apps.cli.options import (
    budget_option,
    dir_option,
    force_option,
    home_folder,
    isolated_option,
    json_option,
    limit_option,
    python_option,
)
from compilescope.apps.cli.program import ProgramCommand, Words
from compilescope.apps.cli.progress import ended_in_order
from compilescope.base.errors import ToolError

GROUP = "Fix"


class _MinifyCommand(ProgramCommand):
    takes_stdin = False
    # Not --limit, which many a training script has itself; its old name may.
    may_follow = frozenset(
        {
            "predicate",
            "site",
            "output",
            "force",
            "isolated",
            "jobs",
            "resume",
            "budget",
            "limit_time",
            "candidate_time",
            "check",
            "device",
            "violation",
            "test_backend",
            "as_json",
        }
    )

    headings: ClassVar[dict[str, tuple[str, ...]]] = {
        "What to keep": ("predicate", "site", "device", "violation", "test_backend", "check"),
        "What to write": ("output", "force", "resume"),
        "Time": ("budget", "limit", "jobs"),
    }

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
@force_option
@isolated_option
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Candidates to try in parallel. The result does not depend on it.",
)
@click.option("--resume", is_flag=True, help="Continue a stopped minify.")
@limit_option("one candidate", usual="based on the program's run time", old_name="--candidate-time")
@budget_option("the whole command", "The best so far is kept.", old_name="--limit-time")
@click.option(
    "--device",
    metavar="NAME",
    help="For violation: a device name or file. [default: what the program's mock backend checks]",
)
@click.option(
    "--violation",
    type=click.IntRange(1),
    metavar="N",
    help="For violation: which one, if the program shows several. [default: 1]",
)
@click.option("--test-backend", metavar="BACKEND", help="For crash and diff: the backend to test.")
@python_option
@dir_option
@json_option
@click.pass_obj
def COMMAND(target: Words, /, **given: Any) -> int:
    from compilescope.apps.cli.commands.minify.check_command import minify_by_check
    from compilescope.apps.cli.commands.minify.program import minify_in_a_copy, minify_program
    from compilescope.apps.cli.commands.minify.shared import within_time
    from compilescope.apps.cli.isolation import announce
    from compilescope.base.processes.deadline import Deadline, command_begun

    kind, words = target
    if not words:
        raise ToolError(
            "No program given.", hint="Try `compilescope minify script.py`, or -m MODULE."
        )
    if kind not in ("script", "module", "code"):
        raise ToolError("minify takes a script, -m MODULE or -c CODE.")
    given["deadline"] = Deadline(given["budget"], begun=command_begun())
    given["home"] = home_folder(given["home"]).absolute()  # Not that of a copy.
    given["program"] = Path(words[0]).stem if kind == "script" else words[0] * (kind == "module")
    _check_options(given)
    if kind == "script" and not Path(words[0]).exists():
        raise ToolError(f"There is no file {words[0]}.")
    output = _output(kind, words, given)
    output.check(resume=given["resume"])
    if given["check"] is not None:
        if kind != "script" or len(words) > 1:
            raise ToolError("--check takes one file.")
        with ended_in_order(pausing=True), within_time(given["deadline"], words[0]):
            announce("check", offered=False)
            return minify_by_check(Path(words[0]), output, given)
    name = words[0] if kind != "code" else "The -c code"
    with ended_in_order(pausing=True), within_time(given["deadline"], name):
        if given["isolated"]:
            return minify_in_a_copy(kind, words, output, given)
        announce("minify")
        return minify_program(kind, words, output, given)


def _check_options(given: dict[str, Any]) -> None:
    if given["check"] is not None and (given["predicate"] or given["site"]):
        raise ToolError("Give --check or --predicate and --site, not both.")
    if given["check"] is not None and given["isolated"]:
        raise ToolError("--check runs in temporary folders already; --isolated is not for it.")
    if given["device"] and given["predicate"] not in (None, "violation"):
        raise ToolError("--device needs --predicate violation.")
    if given["violation"] and given["predicate"] not in (None, "violation"):
        raise ToolError("--violation needs --predicate violation.")
    if (given["device"] or given["violation"]) and given["predicate"] is None:
        given["predicate"] = "violation"
    if sys.platform == "win32":
        raise ToolError("minify needs a POSIX system.")


def _output(kind: str, words: tuple[str, ...], given: dict[str, Any]) -> Any:
    from compilescope.apps.cli.commands.minify.shared import Output

    if given["output"] is not None:
        path = given["output"]
    elif given["check"] is not None:
        file = Path(words[0])
        path = Path(f"{file.stem}.min{file.suffix}")
    else:
        path = Path("repro.py")
    if kind == "script" and path.exists() and os.path.samefile(path, words[0]):
        raise ToolError(f"{path} is the program itself.", hint="Name another file with -o.")
    return Output(path, repro=given["check"] is None, force=given["force"])
