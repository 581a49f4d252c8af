"""`compilescope diff`: does a backend compute what eager mode computes?"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.apps.cli.commands.check.output import EXIT_CODES
from compilescope.apps.cli.options import dir_option, home_folder, json_option, python_option
from compilescope.apps.cli.progress import ended_in_order, working
from compilescope.base.errors import ToolError
from compilescope.base.objects import load_object, names_file

if TYPE_CHECKING:
    from compilescope.measure.diff.report import DiffReport

GROUP = "Numbers"


@click.command(
    "diff",
    short_help="Compare a model under a backend with the same model in eager mode.",
    help="Compare what a model computes under a backend with what it computes in eager mode: "
    "outputs, mutated inputs and buffers, and with --train its gradients. Both are compared with "
    "a float64 run, to tell a real difference from rounding.\n\n"
    "BUILD is file.py:build, a function that returns (model, args) or (model, args, kwargs).\n\n"
    "Exit status: 0 they agree, 1 they differ, 2 inconclusive, or an error.",
)
@click.argument("build", metavar="FILE.py:BUILD")
@click.option(
    "--reference",
    default="eager",
    show_default=True,
    metavar="BACKEND",
    help="The reference: eager is plain Python; any other backend is compiled.",
)
@click.option(
    "--test-backend",
    default="inductor",
    show_default=True,
    metavar="BACKEND",
    help="The backend under test: its name, or file.py:backend.",
)
@click.option("--train", is_flag=True, help="Also compare gradients and one training step.")
@click.option(
    "--optimizer",
    metavar="NAME",
    help="For --train: a torch.optim name, or file.py:function. [default: SGD]",
)
@click.option("--localize", is_flag=True, help="Find the operation where they diverge.")
@click.option(
    "--inputs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Call BUILD this many times: the model of the first call, the inputs of all.",
)
@click.option(
    "--variants",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Generated input sets: like the first, with other values and sizes.",
)
@click.option(
    "--runs",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Runs per input set: equal runs must give equal results.",
)
@click.option("--seed", default=0, show_default=True, help="Seed for BUILD and for --variants.")
@click.option("--atol", type=float, help="Absolute tolerance. [default: by dtype and float64]")
@click.option("--rtol", type=float, help="Relative tolerance. [default: by dtype and float64]")
@click.option("--no-fp64", is_flag=True, help="Compare by tolerances alone, without a float64 run.")
@click.option(
    "--pictures",
    type=click.Path(path_type=Path, file_okay=False),
    help="Plot the errors into this folder, and write the JSON report there.",
)
@python_option
@dir_option
@json_option
def COMMAND(build: str, as_json: bool, home: Path | None, **given: Any) -> int:
    # What the program prints is no part of our JSON.
    quiet: Any = contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()
    with quiet, ended_in_order():  # It calls the program many times.
        report = _compared(build, given)
        folder = report.save_run(home_folder(home))
    if as_json:
        sys.stdout.write(_json(report, folder))
    else:
        print(report.summary())
        print(
            f"\ncompilescope: see the report with `compilescope report {folder.name}`",
            file=sys.stderr,
        )
    sys.stdout.flush()
    return EXIT_CODES[report.verdict]


def _compared(build: str, given: dict[str, Any]) -> DiffReport:
    make = load_object(build, "build")
    if not callable(make):
        raise ToolError(f"{build} is not callable (its type is {type(make).__name__}).")
    backends = {name: _backend(given[name]) for name in ("reference", "test_backend")}
    optimizer = given["optimizer"]
    if optimizer is not None and names_file(optimizer):
        optimizer = load_object(optimizer)

    from compilescope.apps.numbers import KernelDiffHarness
    from compilescope.measure.diff.pictures import plotter
    from compilescope.measure.diff.runs.modes import reseed
    from compilescope.measure.tensors.tolerances import ComparisonConfig

    config = ComparisonConfig(atol=given["atol"], rtol=given["rtol"])
    pictures = given["pictures"]
    if pictures is not None:
        plotter()
    reseed(given["seed"])
    with working("diff") as work:
        work.show(f"calling {build}")
        harness = KernelDiffHarness.from_build(
            make,
            given["inputs"],
            name=build,
            reference_backend=backends["reference"],
            test_backend=backends["test_backend"],
            config=config,
            train=given["train"],
            optimizer=optimizer,
            variants=given["variants"],
            runs=given["runs"],
            seed=given["seed"],
            fp64=not given["no_fp64"],
            progress=work.show,
        )
        return harness.compare(
            generate_visualizations=pictures is not None,
            report_dir=str(pictures or ""),
            localize=given["localize"],
        )


def _backend(text: str) -> Any:
    if not names_file(text):
        return text
    found = load_object(text, "backend")
    if not callable(found):
        raise ToolError(f"{text} is not a backend (its type is {type(found).__name__}).")
    return found


def _json(report: DiffReport, folder: Path) -> str:
    import json

    value = {**report.to_dict(), "run": folder.name}
    # Escaped to ASCII: it can be printed whatever the names in it, and on any terminal.
    return json.dumps(value, indent=2, allow_nan=False) + "\n"
