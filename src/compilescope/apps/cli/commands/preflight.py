"""`compilescope preflight`: would this program's graphs go onto that device?"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from compilescope.apps.cli.interpreters import tell_missing_torch
from compilescope.apps.cli.options import RUN_NAME, dir_option, home_folder, in_home
from compilescope.apps.cli.output import all_option, tell
from compilescope.apps.cli.program import (
    ProgramCommand,
    Words,
    launch_program,
    program_options,
    warn_of_lost_end,
)
from compilescope.apps.cli.progress import working
from compilescope.apps.cli.streams import put_json
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.knowledge.analysis.preflight import DeviceReport
    from compilescope.record.bodies import DeviceChecked
    from compilescope.record.run import Run

GROUP = "Hardware"


class _PreflightCommand(ProgramCommand):
    may_follow = frozenset({"devices", "fail_on", "as_json"})

    headings: ClassVar[dict[str, tuple[str, ...]]] = {"What to check": ("devices", "fail_on")}

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_usage(ctx, formatter)
        formatter.write_usage("compilescope preflight", "[OPTIONS] --run RUN", prefix="       ")


@click.command(
    "preflight",
    cls=_PreflightCommand,
    short_help="Check every graph of a program against a device, without the device.",
    help="Run a program under capture and check every graph it compiles against each --device. "
    "Shows everything the device does not support, at your own lines, and everything that "
    "is in no graph.\n\n"
    "Exit status: 0 the devices support everything, 1 something is not "
    "supported, 2 inconclusive. Everything after the program belongs to it, except "
    "--device, --fail-on and --json; everything after -- belongs to the program.",
)
@click.option(
    "--device",
    "devices",
    multiple=True,
    metavar="NAME",
    help=(
        "A device name or file; repeat for a comparison table. `compilescope devices` lists "
        "the names."
    ),
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning"]),
    default="error",
    show_default=True,
    help="Lowest severity that fails.",
)
@click.option(
    "--run", "run", type=RUN_NAME, metavar="RUN", help="Check a recorded run instead of a program."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON as the last line of stdout.")
@all_option
@program_options
@dir_option
@click.pass_obj
def COMMAND(target: Words, /, **given: Any) -> int:
    from compilescope.backends.device_files import find_devices
    from compilescope.knowledge.analysis.digest import digest
    from compilescope.knowledge.analysis.preflight import preflight

    if not given["devices"]:
        raise ToolError(
            "preflight needs a device: --device NAME.",
            hint=(
                "`compilescope devices` lists the built-in devices; you can also give a file "
                "of your own."
            ),
        )
    devices = find_devices(given["devices"])
    record, status, folder = _record(target, given)
    # It imports torch: a mistake in the words above is told at once.
    unknown = _unknown_operators(given["devices"])
    with working("preflight", "checking graphs"):
        seen = digest(record)
        reports = preflight(record, seen, devices)
    doubt = " ".join(filter(None, (_doubt(record, status), *unknown)))
    _keep(folder, record, reports, doubt)
    if given["as_json"]:
        _print_json(record, reports, doubt)
    else:
        _print(record, reports, doubt, _rest(record, given))
    tell_missing_torch(seen)
    return _exit_code(reports, given["fail_on"], doubt)


def _record(target: Words, given: dict[str, Any]) -> tuple[Run, int, Path]:
    """The run to judge, the status its program left with, and where it lies."""
    from compilescope.record.home import find_run
    from compilescope.record.run import read_run

    if given["run"] is not None:
        if target[1]:
            raise ToolError("Give a program or --run RUN, not both.")
        with working("preflight", "reading the run"):
            folder = find_run(home_folder(given["home"]), given["run"])
            record = read_run(folder)
        return record, record.header.exit_status or 0, folder
    outcome = launch_program(
        target,
        home=given["home"],
        compile_all=given["compile_all"],
        compile_names=given["compile_names"],
        backend=given["backend"],
        calls=True,
    )
    warn_of_lost_end(outcome)
    with working("preflight", "reading the run"):
        record = read_run(outcome.folder, header=outcome.header)
    return record, outcome.exit_status, outcome.folder


def _keep(folder: Path, record: Run, reports: list[DeviceReport], doubt: str) -> None:
    """What each device says, in the run: the dashboard shows which devices were checked, and
    passed. A run of somebody else is only read."""
    from compilescope.record.command_run import append_bodies
    from compilescope.record.provenance import is_recorded_here

    if record.live or not is_recorded_here(folder, record.header):
        return
    with suppress(OSError):  # It lies where nothing can be written: it is read all the same.
        append_bodies(folder, [_outcome(report, doubt) for report in reports])


def _outcome(report: DeviceReport, doubt: str) -> DeviceChecked:
    from compilescope.record.bodies import DeviceChecked

    unclear = report.unknown or not report.graphs or doubt  # As the exit status has it.
    return DeviceChecked(
        device=report.device,
        outcome="fail" if report.errors else "unknown" if unclear else "pass",
        graphs=report.graphs,
        errors=report.errors,
        warnings=report.warnings,
        unknown=len(report.unknown),
        title=report.title,
        whole=True,
    )


def _unknown_operators(names: Sequence[str]) -> list[str]:
    """Names in devices' files that stand for nothing: what they were to refuse would pass."""
    try:
        from compilescope.backends.operator_names import unknown_in_file
    except ImportError:
        return []
    said = [sentence for name in names for sentence in unknown_in_file(name)]
    return list(dict.fromkeys(said))


def _doubt(record: Run, status: int) -> str:
    """Why the judgement may lack something, beside what the reports say; empty where it may not."""
    if status:
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return f"The program ended {how}: anything it would have compiled later is missing."
    if record.cut_short:
        return f"The recording is truncated: {record.cut_short}."
    return ""


def _exit_code(reports: list[DeviceReport], fail_on: str, doubt: str) -> int:
    if any(report.errors or (fail_on == "warning" and report.warnings) for report in reports):
        return 1
    unclear = any(report.unknown or not report.graphs for report in reports)
    return 2 if doubt or unclear else 0


def _rest(record: Run, given: dict[str, Any]) -> str:
    """The command that prints everything, without running the program again."""
    if given["everything"]:
        return ""
    devices = [word for name in given["devices"] for word in ("--device", name)]
    words = ["preflight", "--all", *devices, *in_home(given["home"]), "--run", record.header.run]
    return shlex.join(["compilescope", *words])


def _print(record: Run, reports: list[DeviceReport], doubt: str, rest: str) -> None:
    from compilescope.report.preflight import preflight_document

    header = record.header
    command = " ".join(header.command)
    document = preflight_document(
        f"compilescope preflight {header.run}", command, reports, header.root
    )
    sys.stdout.write("\n")
    tell(document, rest)
    if doubt:
        sys.stdout.write(f"\n{doubt}\n")


def _print_json(record: Run, reports: list[DeviceReport], doubt: str) -> None:
    from compilescope.knowledge.analysis.json_form import device_report_json

    value = {
        "run": record.header.run,
        "torch": record.torch_version,
        "doubt": doubt,
        "devices": {report.device: device_report_json(report) for report in reports},
    }
    put_json(value)
