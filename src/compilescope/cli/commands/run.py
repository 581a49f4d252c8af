"""`compilescope run`: a program under capture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.cli.options import dir_option, has_colour, home_folder, report_width

if TYPE_CHECKING:
    from compilescope.capture.launcher import Outcome

_MODES = {"-m": "module", "-c": "code", "--pytest": "pytest", "--torchrun": "torchrun"}


class _RunCommand(click.Command):
    """Our options end where the program begins; whatever follows is the program's own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        takes_value = {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }
        index = 0
        while index < len(args):
            word = args[index]
            if word in _MODES:
                ctx.obj = (_MODES[word], tuple(args[index + 1 :]))
                break
            if word == "--" or not word.startswith("-") or word == "-":
                rest = args[index + 1 :] if word == "--" else args[index:]
                ctx.obj = ("script", tuple(rest))
                break
            index += 2 if word in takes_value else 1
        else:
            ctx.obj = ("script", ())
        return super().parse_args(ctx, args[:index])

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage("compilescope run", "[OPTIONS] SCRIPT [ARGS]...")
        for rest in ("-m MODULE [ARGS]...", "--pytest [ARGS]...", "--torchrun [ARGS]..."):
            formatter.write_usage("compilescope run", f"[OPTIONS] {rest}", prefix="       ")


@click.command(
    "run",
    cls=_RunCommand,
    short_help="Run a program under capture, then show what was lost.",
    help="Run a program unmodified, record all that torch.compile does, and print a summary.\n\n"
    "The program keeps its output, its signals and its exit status; the summary goes to stderr. "
    "Everything after SCRIPT, -m, -c, --pytest or --torchrun belongs to the program.",
)
@click.option("-m", "_m", is_flag=True, help="Run a module.")
@click.option("-c", "_c", is_flag=True, help="Run a string of Python.")
@click.option("--pytest", "_pytest", is_flag=True, help="Run pytest; events name their test.")
@click.option("--torchrun", "_torchrun", is_flag=True, help="Run torchrun; events name their rank.")
@click.option(
    "--compile-all",
    is_flag=True,
    help="Compile the outermost modules of a program that never calls torch.compile.",
)
@click.option(
    "--compile",
    "compile_names",
    multiple=True,
    metavar="NAME",
    help="Compile modules of the class NAME, or a function: f, Class.method, package.module.f.",
)
@click.option("--backend", help="The backend for --compile and --compile-all.")
@click.option(
    "--ir", is_flag=True, help="Record Inductor's IR too; costs about a tenth of the compile."
)
@click.option(
    "--time",
    "timed",
    is_flag=True,
    help="Time every call of compiled code: inside graphs and outside them.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no summary.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON as the last line of stdout instead."
)
@dir_option
@click.pass_obj
def COMMAND(
    target: tuple[str, tuple[str, ...]],
    /,
    compile_all: bool,
    compile_names: tuple[str, ...],
    backend: str | None,
    ir: bool,
    timed: bool,
    quiet: bool,
    as_json: bool,
    home: Path | None,
    **_flags: Any,
) -> int:
    from compilescope.capture.launcher import die_by, launch
    from compilescope.capture.names import resolve_names
    from compilescope.capture.target import Target
    from compilescope.errors import ToolError
    from compilescope.settings import Settings

    program = Target(target[0], target[1])  # type: ignore[arg-type]
    if backend and not (compile_all or compile_names):
        raise ToolError("--backend needs --compile-all or --compile NAME.")
    program.check()
    names = resolve_names(compile_names, program)
    settings = Settings(
        home=home_folder(home),
        ir=ir,
        time=timed,
        compile_names=("*", *names) if compile_all else names,
        compile_backend=backend,
    )
    outcome = launch(program, settings)
    try:
        _report(outcome, quiet=quiet, as_json=as_json)
    except ToolError as error:
        # The program's status outranks the report's.
        print(f"compilescope: error: {error.message}", file=sys.stderr)
    if not outcome.header_written:
        print("compilescope: the end of the run could not be written: disk full?", file=sys.stderr)
    if outcome.exit_status < 0:
        sys.stdout.flush()
        sys.stderr.flush()
        die_by(-outcome.exit_status)
    return outcome.exit_status


def _report(outcome: Outcome, *, quiet: bool, as_json: bool) -> None:
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
    print(f"\n{text}", file=sys.stderr, flush=True)
