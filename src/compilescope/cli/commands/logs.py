"""`compilescope logs`: log files as a run, with the same views as a recorded one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.cli.files import write_whole
from compilescope.cli.options import (
    dir_option,
    has_colour,
    home_folder,
    json_option,
    print_json,
    report_width,
)
from compilescope.cli.progress import progress_note
from compilescope.cli.reports import draw, format_of
from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.logs.reading import ReadLogs
    from compilescope.model.run import Run

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
    "-o", "--output", type=click.Path(path_type=Path), metavar="RUN", help="The run's folder."
)
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the whole story there: .html, .md, .json, .sarif or .txt.",
)
@click.option(
    "--script",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The program that wrote the log: FILE_fixed.py gets what is known to help.",
)
@click.option(
    "--repro", is_flag=True, help="Write a script for each break; --report does so for device logs."
)
@click.option("--follow", is_flag=True, help="Read on while they grow, until Ctrl-C.")
@json_option
@dir_option
def COMMAND(
    paths: tuple[str, ...],
    output: Path | None,
    report: Path | None,
    script: Path | None,
    repro: bool,
    follow: bool,
    as_json: bool,
    home: Path | None,
) -> None:
    """Read logs into a run: files, folders, .gz, .xz, or - for standard input.

    Formats are told by what the files hold, and may be mixed. No torch is needed.
    """
    from compilescope.model.run import read_run

    form = format_of(report) if report is not None else None
    if report is not None and form is None:
        raise ToolError(f"The ending of {report} names no format.", hint="Use .html or .md, say.")
    read = _read(list(paths), home_folder(home), output, follow)
    _warn(read)
    run = read_run(read.path)
    if repro or (report is not None and _is_for_a_device(run)):
        _write_repros(read.path)
        run = read_run(read.path)
    fixed = _write_fixed(script, run) if script is not None else None
    if report is not None and form is not None:
        write_whole(report, draw([run], form, to_file=True))
        print(f"Wrote {report} ({report.stat().st_size / 1e6:.1f} MB).", file=sys.stderr)
    if as_json:
        print_json({**_answers(read, run), **({"fixed": fixed} if fixed is not None else {})})
    elif report is None:
        _show(run)
    name = read.path if output is not None else read.run
    print(f"The run: compilescope report {name}", file=sys.stderr)


def _read(paths: list[str], home: Path, output: Path | None, follow: bool) -> ReadLogs:
    if follow:
        from compilescope.cli.following import follow_logs

        return follow_logs(paths, home, output)
    from compilescope.logs.reading import read_logs

    with progress_note("reading") as progress:
        return read_logs(paths, home, target=output, progress=progress)


def _is_for_a_device(run: Run) -> bool:
    """Its reader is likely to have a device and not its log's program at hand."""
    from compilescope.rules.logged.verdict import judge_log

    verdict = judge_log(run)
    return verdict is not None and any(system != "torch" for system in verdict.systems)


def _write_repros(run: Path) -> None:
    from compilescope.cli.progress import doing_note
    from compilescope.minify.logged.writing import write_log_repros

    with doing_note() as note:
        write_log_repros(run, note)


def _write_fixed(script: Path, run: Run) -> dict[str, Any]:
    """The script beside the original; what was done and what is left, for the JSON."""
    from compilescope.fixes.unproven import propose_unproven

    made = propose_unproven(script, run)
    target = script.with_name(f"{script.stem}_fixed.py")
    write_whole(target, made.text)
    print(f"Wrote {target}, not verified here: it needs the device.", file=sys.stderr)
    for item in made.left:
        print(f"Left to do by hand: {item}", file=sys.stderr)
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
        print(f"Note: {len(lines) - _MOST_WARNINGS} more such notes.", file=sys.stderr)


def _show(run: Run) -> None:
    from compilescope.report.document import report_document
    from compilescope.report.render.terminal import to_text
    from compilescope.report.section import Reading

    document = report_document(Reading(run))
    sys.stdout.write(to_text(document, width=report_width(), colour=has_colour(sys.stdout)))


def _answers(read: ReadLogs, run: Run) -> dict[str, Any]:
    import msgspec

    from compilescope.rules.digest import digest
    from compilescope.rules.logged.answers import answers

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
