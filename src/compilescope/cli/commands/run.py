"""`compilescope run`: a program under capture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.cli.next_step import Given, next_step
from compilescope.cli.options import dir_option, has_colour, report_width
from compilescope.cli.program import (
    ProgramCommand,
    Words,
    launch_program,
    program_options,
    warn_of_lost_end,
)

if TYPE_CHECKING:
    from compilescope.capture.launcher import Outcome

_KEEPER = "compilescope.minify.failures:keep_failure"


@click.command(
    "run",
    cls=ProgramCommand,
    short_help="Run a program under capture, then show what was lost.",
    help="Run a program unmodified, record all that torch.compile does, and print a summary.\n\n"
    "The program keeps its output, its signals and its exit status; the summary goes to stderr. "
    "Everything after SCRIPT, -m, -c, --pytest or --torchrun belongs to the program.",
)
@program_options
@click.option(
    "--ir", is_flag=True, help="Record Inductor's IR too; costs about a tenth of the compile."
)
@click.option(
    "--time",
    "timed",
    is_flag=True,
    help="Time every call of compiled code: inside graphs and outside them.",
)
@click.option(
    "--repro",
    is_flag=True,
    help="For each backend failure write the smallest script that shows it, after the program.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no summary.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON as the last line of stdout instead."
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
    from compilescope.capture.launcher import die_by
    from compilescope.errors import ToolError

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
    try:
        if repro:
            _write_repros(outcome)
        given = Given(target, home, compile_all, compile_names, backend)
        _report(outcome, given, quiet=quiet, as_json=as_json)
    except ToolError as error:
        # The program's status outranks the report's.
        print(f"compilescope: error: {error.message}", file=sys.stderr)
    warn_of_lost_end(outcome)
    if outcome.exit_status < 0:
        sys.stdout.flush()
        sys.stderr.flush()
        die_by(-outcome.exit_status)
    return outcome.exit_status


def _write_repros(outcome: Outcome) -> None:
    """The program has ended: nothing here can disturb it."""
    from compilescope.cli.progress import doing_note
    from compilescope.minify.failures import write_repros

    with doing_note() as note:
        write_repros(outcome.folder, note)


def _report(outcome: Outcome, given: Given, *, quiet: bool, as_json: bool) -> None:
    if quiet and not as_json:
        return
    from compilescope.model.run import read_run
    from compilescope.report.section import Reading

    reading = Reading(read_run(outcome.folder, header=outcome.header))
    if as_json:
        import msgspec

        print(msgspec.json.encode(reading.digest).decode(), flush=True)
        return
    from compilescope.report.document import report_document
    from compilescope.report.render.terminal import to_text

    document = report_document(reading)
    text = to_text(document, width=report_width(), colour=has_colour(sys.stderr))
    step = next_step(reading.digest, given)
    # In a line of its own, however long: it is there to be copied.
    last = f"\nNext: {step}\n" if step else ""
    print(f"\n{text}{last}", file=sys.stderr, flush=True)
