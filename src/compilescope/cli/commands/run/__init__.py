"""`compilescope run`: a program under capture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.cli.broken_streams import say, settle_streams, told_if_possible
from compilescope.cli.commands.run.next_step import ProgramRun, next_step
from compilescope.cli.options import dir_option
from compilescope.cli.output import told_text
from compilescope.cli.program import (
    ProgramCommand,
    Words,
    launch_program,
    program_options,
    warn_of_lost_end,
)
from compilescope.cli.streams import put, put_json

if TYPE_CHECKING:
    from compilescope.recorder.launcher import ProgramOutcome

GROUP = "Diagnose"

_AROUND = 4
"""Lines that are printed around the summary: blanks, and the next step, which may be long."""
_KEEPER = "compilescope.minify.failure_repros:keep_failure"


@click.command(
    "run",
    cls=ProgramCommand,
    short_help="Run a program and show what torch.compile did with it.",
    help="Run a program unmodified, record everything torch.compile does, and print a summary.\n\n"
    "The program keeps its output, signals and exit status; the summary goes to stderr. "
    "Everything after SCRIPT, -m, -c, --pytest or --torchrun belongs to the program.",
)
@program_options
@click.option(
    "--ir", is_flag=True, help="Also record Inductor's IR; adds about 10% to compile time."
)
@click.option(
    "--time",
    "timed",
    is_flag=True,
    help="Time every call of compiled code, inside and outside graphs.",
)
@click.option(
    "--repro",
    is_flag=True,
    help="After the program, write a minimal script for each backend failure.",
)
@click.option("-q", "--quiet", is_flag=True, help="Don't print a summary.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON as the last line of stdout instead of a summary.",
)
@dir_option
@click.pass_obj
def COMMAND(
    target: Words,
    /,
    compile_all: bool,
    compile_names: tuple[str, ...],
    backend: str | None,
    ir: bool,
    timed: bool,
    repro: bool,
    quiet: bool,
    as_json: bool,
    home: Path | None,
    **_flags: Any,
) -> int:
    from compilescope.errors import ToolError
    from compilescope.recorder.launcher import die_by

    outcome = launch_program(
        target,
        home=home,
        compile_all=compile_all,
        compile_names=compile_names,
        backend=backend,
        ir=ir,
        timed=timed,
        failure_keeper=_KEEPER if repro else "",
    )
    # The program's status outranks the report's.
    with told_if_possible():
        try:
            if repro:
                _write_repros(outcome)
            given = ProgramRun(target, home, compile_all, compile_names, backend)
            _report(outcome, given, quiet=quiet, as_json=as_json)
        except ToolError as error:
            say(f"compilescope: error: {error.message}")
        warn_of_lost_end(outcome)
    settle_streams()
    if outcome.exit_status < 0:
        die_by(-outcome.exit_status)
    return outcome.exit_status


def _write_repros(outcome: ProgramOutcome) -> None:
    """The program has ended: nothing here can disturb it."""
    from compilescope.cli.progress import working
    from compilescope.minify.failure_repros import write_repros

    with working("run", "writing repro scripts") as work:
        write_repros(outcome.folder, work.show)


def _report(outcome: ProgramOutcome, given: ProgramRun, *, quiet: bool, as_json: bool) -> None:
    if quiet and not as_json:
        return
    from compilescope.model.run import read_run
    from compilescope.report.section import Reading

    reading = Reading(read_run(outcome.folder, header=outcome.header))
    if as_json:
        put_json(reading.digest)
        return
    from compilescope.cli.interpreters import tell_missing_torch
    from compilescope.report.document import report_document

    step = next_step(reading.digest, given)
    run = reading.digest.run.partition("-")[0]
    rest = given.of_run("show", run, "--all")
    text = told_text(report_document(reading), rest, stream=sys.stderr, reserved=_AROUND)
    # In a line of its own, however long: it is there to be copied.
    last = f"\nNext: {step}\n" if step else ""
    put(f"\n{text}", error=True)
    if not tell_missing_torch(reading.digest):
        print(last, end="", file=sys.stderr, flush=True)
