"""`compilescope sweep`: capture over many programs or model classes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.apps.cli.options import (
    RUN_LIMIT_S,
    RUN_NAME,
    dir_option,
    home_folder,
    in_home,
    json_option,
    limit_option,
    print_json,
    python_option,
)
from compilescope.apps.cli.output import all_option, tell, with_command

if TYPE_CHECKING:
    from compilescope.knowledge.analysis.sweeps import Regressions, Sweep
    from compilescope.scale.sweep.sweep import SweepEnd

GROUP = "Diagnose"


@click.command("sweep", short_help="Capture many programs or model classes and sum up the causes.")
@click.argument("sources", metavar="[LIST|DIR]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--transformers",
    metavar="PATTERN",
    help="Sweep over model classes of transformers, built tiny: all, '*ForCausalLM', or bert.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Jobs at a time. [default: half the cores; with ray, what the cluster has]",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    help="Where jobs run: processes here, or a Ray cluster. [default: local]",
)
@click.option("--address", help="The Ray cluster to join. [default: start one here]")
@click.option(
    "--store",
    metavar="URL",
    help="Where results go: a folder, s3://..., gs://.... [default: the sweep's run]",
)
@limit_option("one job", RUN_LIMIT_S, old_name="--timeout")
@click.option(
    "--memory",
    type=click.FloatRange(min=0, min_open=True),
    metavar="GB",
    help="Memory limit for one job. [default: this machine's memory divided by --jobs]",
)
@click.option("--resume", is_flag=True, help="Continue an unfinished sweep; run only what is left.")
@click.option("--backend", help="The backend for --transformers, --compile-all, --bench, --diff.")
@click.option(
    "--compile-all",
    is_flag=True,
    help="Compile the outermost modules of programs that never call torch.compile.",
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Where models run.")
@click.option(
    "--gpus",
    type=click.FloatRange(min=0),
    metavar="N",
    help="GPUs for one job. [default: 1 with --device cuda, else 0]",
)
@click.option("--bench", is_flag=True, help="Also measure the speed-up over eager mode.")
@click.option("--diff", is_flag=True, help="Also compare the numbers with eager mode's.")
@click.option("--fix", is_flag=True, help="Also search for fixes and verify them.")
@click.option(
    "--against", type=RUN_NAME, metavar="RUN", help="Show what changed since this earlier sweep."
)
@python_option
@all_option
@json_option
@dir_option
def COMMAND(sources: tuple[Path, ...], everything: bool, as_json: bool, **given: Any) -> int:
    """Capture every program of a LIST or DIR, or model classes of transformers, each in a process
    of its own with limits of time and memory, and show which causes hit most of them.

    LIST is a text file: one program a line with its arguments, or -m MODULE; # starts a comment.
    DIR is searched for .py files; package modules, tests and files that don't use torch are left
    out. --bench and --diff need a function build() in the program.

    Exit status: 0 if every job is ok, 1 if some are not, 2 on an error, 130 if stopped: what is
    done is kept, and --resume continues.
    """
    from compilescope.apps.cli.commands.sweep.options import asked_sweep
    from compilescope.record.home import find_run

    home = home_folder(given["home"])
    against = find_run(home, given["against"]) if given["against"] else None
    earlier = _sweep(against) if against else None
    words = _words(given, sources)
    swept = asked_sweep(sources, given, words, home, as_json)
    changes = _changes(earlier, swept)
    if as_json:
        from compilescope.apps.cli.run_json import sweep_value

        print_json(sweep_value(_sweep(swept.folder), changes))
    else:
        _show(swept, changes, given["home"], everything)
    _say(swept, words)
    return swept.exit_status


def _words(given: dict[str, Any], sources: tuple[Path, ...]) -> tuple[str, ...]:
    """The command as it can be typed again, from `sweep` on."""
    words = ["sweep", *map(str, sources)]
    options = (
        *("transformers", "jobs", "engine", "address", "store", "limit", "memory"),
        *("backend", "device", "gpus"),
    )
    usual = {"engine": "local", "limit": RUN_LIMIT_S}
    for name in options:
        if given[name] is not None and given[name] != usual.get(name):
            value = given[name]
            words += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
    words += [
        f"--{name.replace('_', '-')}"
        for name in ("compile_all", "bench", "diff", "fix")
        if given[name]
    ]
    return tuple(words)


def _sweep(folder: Path) -> Sweep:
    from compilescope.base.errors import ToolError
    from compilescope.knowledge.analysis.sweeps import is_sweep, sweep_of
    from compilescope.record.run import read_run

    run = read_run(folder)
    if not is_sweep(run):
        raise ToolError(f"{run.header.run} is not a sweep.")
    return sweep_of(run)


def _changes(earlier: Sweep | None, swept: SweepEnd) -> Regressions | None:
    from compilescope.knowledge.analysis.sweeps import regressions

    return None if earlier is None else regressions(earlier, _sweep(swept.folder))


def _show(
    swept: SweepEnd, changes: Regressions | None, home: Path | None, everything: bool
) -> None:
    from compilescope.record.run import read_run
    from compilescope.report.document import report_document
    from compilescope.report.section import Reading
    from compilescope.report.sweeps import changes_parts, with_parts

    reading = Reading(read_run(swept.folder))
    document = report_document(reading)
    if changes is not None:
        document = with_parts(document, changes_parts(changes, reading.root))
    run = swept.folder.name.partition("-")[0]
    one = shlex.join(["compilescope", "show", *in_home(home), run, "--job", "NAME"])
    document = with_command(document, "One job:", one)
    rest = shlex.join(["compilescope", "show", "--all", *in_home(home), run])
    tell(document, rest, everything=everything)


def _say(swept: SweepEnd, words: tuple[str, ...]) -> None:
    """What is no part of the answer."""
    for remark in swept.remarks:
        print(f"compilescope: {remark}", file=sys.stderr)
    if swept.exit_status == 130:
        again = shlex.join(["compilescope", *words, "--resume"])
        print(f"compilescope: stopped; continue with: {again}", file=sys.stderr)
