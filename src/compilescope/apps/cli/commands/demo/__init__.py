"""`compilescope demo`: a tour of every capability, or a quick run of a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from compilescope.apps.cli.options import json_option
from compilescope.base.errors import ToolError

GROUP = "Learn"
_QUICK = ("batch", "seq", "padding", "atol", "rtol", "constraints", "backend", "fail", "runs")


@click.command(
    "demo",
    short_help="Tour every capability on a small model, or try a transformers model.",
    help="Tour every capability on one small model. Each step says what it shows, prints the "
    "command you would type, and runs it in a folder of its own.\n\n"
    "On a terminal, each step waits: Enter runs it, s skips it, q quits. With --yes they run one "
    "after another.\n\n"
    "With --model, build a small transformers model with random weights instead, capture it, "
    "check it against a device, and compare its numbers with eager mode.\n\n"
    "Exit status: 0 every step did what it should, 1 one did not, 2 the tour could not run. With "
    "--model: 0 the numbers agree, 1 they don't or can't be compared.",
)
@click.option("-y", "--yes", is_flag=True, help="Run without asking.")
@click.option("--list", "as_list", is_flag=True, help="List the steps; run nothing.")
@click.option(
    "--only",
    multiple=True,
    metavar="STEP",
    help="Only this step, and the steps whose results it reads. Can be repeated.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="A new or empty folder to work in. [default: a temporary folder, which is kept]",
)
@click.option("--model", metavar="NAME", help="A transformers family: bert, gpt2, llama, vit, ...")
@click.option("--batch", type=click.IntRange(1), help="For --model: batch size. [default: 2]")
@click.option("--seq", type=click.IntRange(1), help="For --model: sequence length. [default: 16]")
@click.option(
    "--padding",
    metavar="N|SHARE",
    help="For --model: padding at the end of each sequence, as tokens (8) or a share (0.25 or "
    "25%). [default: 25%]",
)
@click.option("--atol", type=float, help="For --model: absolute tolerance. [default: by dtype]")
@click.option("--rtol", type=float, help="For --model: relative tolerance. [default: by dtype]")
@click.option(
    "--constraints",
    metavar="DEVICE",
    help="For --model: a device name or file to check against. [default: npu-a]",
)
@click.option(
    "--backend",
    metavar="NAME",
    help="For --model: the backend. [default: inductor, or aot_eager without a C++ compiler]",
)
@click.option(
    "--fail",
    metavar="OP",
    help="For --model: make a backend fail at this operation (gelu, layer_norm, ...) and write a "
    "verified repro.",
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path, file_okay=False),
    help="For --model: where runs are stored. [default: .compilescope in the demo's folder]",
)
@json_option
def COMMAND(yes: bool, model: str | None, folder: Path | None, as_json: bool, **given: Any) -> int:
    if model is not None:
        _check_alone(given, ("as_list", "only"), "--model cannot be combined with")
        from compilescope.apps.cli.commands.demo.quick import quick

        return quick(model, folder, as_json=as_json, **{name: given[name] for name in _QUICK})
    _check_alone(given, _QUICK, "--model is needed for")
    return _tour(yes, folder, as_json, as_list=given["as_list"], only=given["only"])


def _check_alone(given: dict[str, Any], names: tuple[str, ...], words: str) -> None:
    for name in names:
        if given[name] is not None and given[name] is not False and given[name] != ():
            raise ToolError(f"{words} --{name.removeprefix('as_')}.")


def _tour(
    yes: bool, folder: Path | None, as_json: bool, *, as_list: bool, only: tuple[str, ...]
) -> int:
    from compilescope.apps.cli.commands.demo.output import print_list, take_tour
    from compilescope.apps.cli.main import group
    from compilescope.apps.demo.tour import all_steps, choose

    commands = group.list_commands(click.get_current_context())
    steps = choose(all_steps(commands), only)
    if as_list:
        print_list(steps, as_json=as_json)
        return 0
    asks = not yes
    if asks and as_json:
        raise ToolError("--json needs --yes or --list.")
    if asks and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ToolError("The demo asks before each step; without a terminal, use --yes.")
    return take_tour(steps, folder, asks=asks, as_json=as_json)
