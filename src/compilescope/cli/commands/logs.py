"""`compilescope logs`: log files as a run, with the same views as a recorded one."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.cli.files import write_whole
from compilescope.cli.options import dir_option, home_folder, in_home, json_option, print_json
from compilescope.cli.progress import working
from compilescope.cli.reports import draw, format_of
from compilescope.cli.telling import all_option, tell
from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.logs.reading import ReadLogs
    from compilescope.model.run import Run

GROUP = "Diagnose"

_MOST_WARNINGS = 10
_LOG_KEYS = (
    "formats",
    "flags",
    "build",
    "cut_head",
    "cut_tail",
    "interleaved",
    "lacks",
    "notes",
    "rerun",
)


@click.command("logs", short_help="Read TORCH_TRACE, TORCH_LOGS, torch_xla and tt-xla logs.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="RUN", help="Folder for the run."
)
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a full report: .html, .md, .json, .sarif or .txt.",
)
@click.option(
    "--script",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The program that wrote the log: writes FILE_fixed.py with the changes known to help.",
)
@click.option(
    "--repro",
    is_flag=True,
    help="Write a script for each graph break; implied by --report for device logs.",
)
@click.option("--follow", is_flag=True, help="Keep reading as the logs grow, until Ctrl-C.")
@all_option
@json_option
@dir_option
def COMMAND(
    paths: tuple[str, ...],
    output: Path | None,
    report: Path | None,
    script: Path | None,
    repro: bool,
    follow: bool,
    everything: bool,
    as_json: bool,
    home: Path | None,
) -> None:
    """Read logs into a run: files, folders, .gz, .xz, or - for standard input.

    Formats are detected from the content and can be mixed. Works without torch.
    """
    from compilescope.model.run import read_run

    form = format_of(report) if report is not None else None
    if report is not None and form is None:
        raise ToolError(
            f"The suffix of {report} matches no report format.",
            hint="Use .html or .md, for example.",
        )
    read = _read(list(paths), home_folder(home), output, follow)
    _warn(read)
    run = read_run(read.path)
    if repro or (report is not None and _is_for_a_device(run)):
        _write_repros(read.path)
        run = read_run(read.path)
    fixed = _write_fixed(script, run) if script is not None else None
    if report is not None and form is not None:
        with working("logs", "writing the report"):
            write_whole(report, draw([run], form, to_file=True))
        print(f"Wrote {report} ({report.stat().st_size / 1e6:.1f} MB).", file=sys.stderr)
    if as_json:
        print_json({**_answers(read, run), **({"fixed": fixed} if fixed is not None else {})})
    name = str(read.path) if output is not None else read.run
    if report is None and not as_json:
        _show(
            run,
            ""
            if everything
            else shlex.join(["compilescope", "show", "--all", *in_home(home), name]),
        )
    print(f"Full report: compilescope report {name}", file=sys.stderr)


def _read(paths: list[str], home: Path, output: Path | None, follow: bool) -> ReadLogs:
    if follow:
        from compilescope.cli.following import follow_logs

        return follow_logs(paths, home, output)
    from compilescope.logs.reading import read_logs

    with working("logs", "reading") as work:
        return read_logs(paths, home, target=output, progress=work.percent)


def _is_for_a_device(run: Run) -> bool:
    """Its reader is likely to have a device and not its log's program at hand."""
    from compilescope.rules.logged.verdict import judge_log

    verdict = judge_log(run)
    return verdict is not None and any(system != "torch" for system in verdict.systems)


def _write_repros(run: Path) -> None:
    from compilescope.minify.logged.writing import write_log_repros

    with working("logs", "writing repro scripts") as work:
        write_log_repros(run, work.show)


def _write_fixed(script: Path, run: Run) -> dict[str, Any]:
    """The script beside the original; what was done and what is left, for the JSON."""
    from compilescope.fixes.unproven import propose_unproven

    made = propose_unproven(script, run)
    target = script.with_name(f"{script.stem}_fixed.py")
    write_whole(target, made.text)
    print(f"Wrote {target}, unverified: verifying it needs the device.", file=sys.stderr)
    for item in made.left:
        print(f"To do by hand: {item}", file=sys.stderr)
    return {"script": str(target), "done": made.done, "left": made.left, "verified": False}


def _warn(read: ReadLogs) -> None:
    """What could not be read is said, and never hidden in a good report."""
    lines = [f"{one.source}: {text}" for one in read.sources for text in one.problems]
    unread = sum(one.unread for one in read.sources)
    if unread:
        lines.append(f"{unread} records or lines could not be read.")
    for line in lines[:_MOST_WARNINGS]:
        print(f"Note: {line}", file=sys.stderr)
    if len(lines) > _MOST_WARNINGS:
        print(f"Note: {len(lines) - _MOST_WARNINGS} more notes.", file=sys.stderr)


def _show(run: Run, rest: str) -> None:
    from compilescope.report.document import report_document
    from compilescope.report.section import Reading

    with working("logs", "finding causes"):
        document = report_document(Reading(run, full=not rest))
    tell(document, rest)


def _answers(read: ReadLogs, run: Run) -> dict[str, Any]:
    import msgspec

    from compilescope.rules.digest import digest
    from compilescope.rules.logged.answers import answers

    with working("logs", "finding causes"):
        found = answers(run, digest(run))
    assert found is not None, "a run that was read from logs says so"
    log = msgspec.to_builtins(found.verdict)
    return {
        "run": read.run,
        "path": str(read.path),
        "log": {name: log[name] for name in _LOG_KEYS},
        "sources": [_source(one) for one in read.sources],
        "graphs": len(found.graphs),
        "expected": found.expected,
        "at_least": found.at_least,
        "classes": found.classes,
        "breaks": msgspec.to_builtins(found.breaks),
        "recompiles": found.recompiles,
        "compiled": msgspec.to_builtins(found.graphs),
        "unread": found.verdict.unread,
    }


def _source(one: Any) -> dict[str, Any]:
    import msgspec

    return dict(msgspec.to_builtins(one))
