"""`compilescope devices`: the devices that models can be checked against, and files for more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.apps.cli.options import json_option, print_json
from compilescope.apps.cli.output import tell

if TYPE_CHECKING:
    from compilescope.backends.operator_names import NamedOperators
    from compilescope.record.devicefile import DeviceFile, DeviceFileProblem
    from compilescope.report.blocks import Block

GROUP = "Hardware"


@click.group(
    "devices",
    invoke_without_command=True,
    short_help="List, show or check device descriptions.",
)
@json_option
@click.pass_context
def COMMAND(ctx: click.Context, as_json: bool) -> None:
    """List the example devices, show one, or check a device file of your own."""
    if ctx.invoked_subcommand is not None:
        return
    from compilescope.backends.device_files import FOLDER, shipped_devices
    from compilescope.report.blocks import Facts, words

    devices = shipped_devices()
    if as_json:
        rows = [
            {"name": d.name, "title": d.title, "file": str(FOLDER / f"{d.name}.toml")}
            for d in devices
        ]
        print_json({"devices": rows})
        return
    facts = Facts(tuple((device.name, words(device.title)) for device in devices))
    _print("Devices", "Copy one as a starting point: compilescope devices show NAME", [facts])


@COMMAND.command("show", short_help="Show what a device supports.")
@click.argument("device", metavar="NAME|FILE")
@json_option
def show(device: str, as_json: bool) -> None:
    """Show what a device supports: a built-in device by NAME, or your own FILE."""
    from compilescope.backends.device_files import device_path, find_device
    from compilescope.report.device import device_blocks

    found, path = find_device(device), device_path(device)
    if as_json:
        print_json({"file": str(path), "device": found})
        return
    _print(f"{found.name}  {found.title}".rstrip(), str(path), device_blocks(found))


@COMMAND.command("check", short_help="Check a device file.")
@click.argument("file", metavar="FILE")
@json_option
def check(file: str, as_json: bool) -> int:
    """Check a device file: its keys, its values and the operators it names.

    Exit status: 0 no problems, 1 problems found, 2 the file can't be read.
    """
    from compilescope.backends.device_files import device_path
    from compilescope.record.devicefile import examine_device, read_text

    path = device_path(file)
    examined = examine_device(read_text(path))
    operators, why_not = _operators(examined)
    problems = [*examined.problems, *(operators.problems if operators else ())]
    if as_json:
        print_json(_verdict(path, examined, problems, operators, why_not))
    else:
        _tell(path, examined, problems, operators, why_not)
    return 1 if problems else 0


def _operators(file: DeviceFile) -> tuple[NamedOperators | None, str]:
    """What torch says to the operators, or why nobody could ask it."""
    if file.sound is None:
        return None, "the file has other problems"
    if not file.patterns:
        return None, "it names no operators"
    try:
        from compilescope.backends.operator_names import examine_operators
    except ImportError:
        return None, "torch is not installed here"
    return examine_operators(file), ""


def _verdict(
    path: Path,
    file: DeviceFile,
    problems: list[DeviceFileProblem],
    operators: NamedOperators | None,
    why_not: str,
) -> dict[str, Any]:
    return {
        "file": str(path),
        "ok": not problems,
        "device": file.device.name if file.device else None,
        "problems": problems,
        "notes": operators.notes if operators else (),
        "operators": {
            "named": len(file.patterns),
            "checked": operators is not None,
            "why_not": why_not,
            "unchecked": operators.unchecked if operators else [p.name for p in file.patterns],
        },
    }


def _tell(
    path: Path,
    file: DeviceFile,
    problems: list[DeviceFileProblem],
    operators: NamedOperators | None,
    why_not: str,
) -> None:
    for problem in sorted(problems, key=lambda problem: problem.line):
        _line(path, problem, "")
    for note in operators.notes if operators else ():
        _line(path, note, "note: ")
    if operators and operators.unchecked:
        names = ", ".join(operators.unchecked)
        print(f"Not checked, because their libraries are not loaded here: {names}.")
    elif why_not and file.patterns:
        print(f"The {len(file.patterns)} operators it names were not checked: {why_not}.")
    if not problems and file.device is not None:
        checked = len(file.patterns) - len(operators.unchecked) if operators else 0
        more = f" torch knows all {checked} operators it names." if checked else ""
        print(f"{path}: device {file.device.name} has no problems.{more}")


def _line(path: Path, problem: DeviceFileProblem, label: str) -> None:
    print(f"{path}:{problem.line}: {label}{problem}.")
    if problem.hint:
        print(f"    {problem.hint}")


def _print(title: str, subtitle: str, blocks: list[Block]) -> None:
    from compilescope.report.blocks import Document, Part

    document = Document(title, subtitle, (Part("devices", "", tuple(blocks)),))
    tell(document, "")
