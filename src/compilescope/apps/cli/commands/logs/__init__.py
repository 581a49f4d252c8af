"""`compilescope logs`: log files as a run, with the same views as a recorded one."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.apps.cli.options import (
    budget_option,
    dir_option,
    force_option,
    home_folder,
    in_home,
    json_option,
    print_json,
    write_whole,
)
from compilescope.apps.cli.output import all_option, room, tell
from compilescope.apps.cli.progress import working
from compilescope.apps.cli.report_formats import draw, format_of
from compilescope.base.errors import ToolError
from compilescope.base.outputs import check_output, is_report

if TYPE_CHECKING:
    from compilescope.logs.reader import ReadLogs
    from compilescope.record.run import Run

GROUP = "Diagnose"

_MOST_WARNINGS = 10
"""Chosen: what is read at a glance; the rest is counted."""
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
    "prepare",
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
    metavar="FILE",
    help="The program that wrote the log, or 'FILE ARGS': writes FILE_fixed.py, the same program "
    "with fixes for the log's graph breaks, third-party code included. Fixes are verified by "
    "running it here.",
)
@budget_option("all runs of --script")
@click.option(
    "--source",
    "sources",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder with the program's files: for the lines around each place, for --script and "
    "--repro. Repeatable.",
)
@click.option(
    "--repro",
    is_flag=True,
    help="Write a repro for each graph break, verified here. The model is taken from --script, or "
    "from the log's program in --source; without them, the repro is a stock example. Implied by "
    "--report for device logs.",
)
@force_option
@click.option("--follow", is_flag=True, help="Keep reading as the logs grow, until Ctrl-C.")
@all_option
@json_option
@dir_option
def COMMAND(
    paths: tuple[str, ...],
    output: Path | None,
    report: Path | None,
    script: str | None,
    budget: float | None,
    sources: tuple[Path, ...],
    repro: bool,
    force: bool,
    follow: bool,
    everything: bool,
    as_json: bool,
    home: Path | None,
) -> None:
    """Read logs into a run: files, folders, .gz, .xz, or - for standard input.

    Formats are detected from the content and can be mixed. Works without torch.
    """
    from compilescope.record.run import read_run

    form = format_of(report) if report is not None else None
    if report is not None and form is None:
        raise ToolError(
            f"The suffix of {report} matches no report format.",
            hint="Use .html or .md, for example.",
        )
    if report is not None:
        check_output(report, force=force, ours=is_report)
    if script is not None:
        _check_fixed(script, force)
    folders = tuple(dict.fromkeys(map(str, _source_folders(sources, script))))
    read = _read(list(paths), home_folder(home), output, follow, folders)
    run = read_run(read.path)
    _warn(read, run)
    if repro or (report is not None and _is_for_a_device(run)):
        _write_repros(read.path, run, script, folders, asked=repro or script is not None)
        run = read_run(read.path)
    fixed = None
    if script is not None:
        fixed = _write_fixed(read.path, script, run, budget, folders, force)
        run = read_run(read.path)
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
    print(f"Full report: {shlex.join(['compilescope', 'report', name])}", file=sys.stderr)


def _read(
    paths: list[str], home: Path, output: Path | None, follow: bool, sources: tuple[str, ...]
) -> ReadLogs:
    if follow:
        from compilescope.apps.cli.commands.logs.follow import follow_logs

        return follow_logs(paths, home, output, sources)
    from compilescope.logs.reader import read_logs

    with working("logs", "reading") as work:
        return read_logs(paths, home, target=output, progress=work.percent, source_folders=sources)


def _source_folders(sources: tuple[Path, ...], script: str | None) -> Iterator[Path]:
    """Where the user says they are, and beside the program."""
    from compilescope.apps.cli.commands.logs.script import program_of

    yield from (folder.resolve() for folder in sources)
    if script is not None:
        yield Path(program_of(script).words[0]).resolve().parent


def _is_for_a_device(run: Run) -> bool:
    """Its reader is likely to have a device and not its log's program at hand."""
    from compilescope.knowledge.analysis.logged.verdict import judge_log

    verdict = judge_log(run)
    return verdict is not None and any(system != "torch" for system in verdict.systems)


def _write_repros(
    path: Path, run: Run, script: str | None, folders: tuple[str, ...], *, asked: bool
) -> None:
    from compilescope.apps.cli.commands.logs.script import write_repros

    for_a_device = _is_for_a_device(run)
    write_repros(path, run, script, is_for_a_device=for_a_device, asked=asked, folders=folders)


def _check_fixed(script: str, force: bool) -> None:
    """Before the logs are read, not after."""
    from compilescope.apps.cli.commands.logs.script import program_of
    from compilescope.change.repair.delivery.logged import plan_logged

    plan_logged(program_of(script), force=force)


def _write_fixed(
    path: Path,
    script: str,
    run: Run,
    budget: float | None,
    folders: tuple[str, ...],
    force: bool,
) -> dict[str, Any]:
    """The script beside the original; what was done and what is left, for the JSON."""
    from compilescope.apps.cli.commands.logs.script import write_fixed

    for_a_device = _is_for_a_device(run)
    return write_fixed(
        path,
        script,
        run,
        is_for_a_device=for_a_device,
        budget=budget,
        folders=folders,
        force=force,
    )


def _warn(read: ReadLogs, run: Run) -> None:
    """What could not be read is said, and never hidden in a good report; nor is a build that leaves
    things out, or a file that is not the program's."""
    from compilescope.knowledge.analysis.logged.verdict import RELEASE, judge_log
    from compilescope.record.bodies import SourceChecked

    lines = [f"{one.source}: {text}" for one in read.sources for text in one.problems]
    verdict = judge_log(run)
    if verdict is not None and RELEASE in verdict.notes:
        lines.append(RELEASE)
    lines += [
        f"{body.here} is not used: {body.problem}."
        for _, body in run.of(SourceChecked)
        if body.problem
    ]
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
        brief = Reading(run, drawn=room(sys.stdout))
        document = report_document(brief if rest else Reading(run, full=True))
    tell(document, rest)


def _answers(read: ReadLogs, run: Run) -> dict[str, Any]:
    import msgspec

    from compilescope.change.fixes.advice import advised
    from compilescope.knowledge.analysis.digest import digest
    from compilescope.knowledge.analysis.logged.answers import answers

    with working("logs", "finding causes"):
        found = answers(run, advised(run, digest(run)))
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
        "breaks": iter(found.breaks),  # Not all at once: there may be 100,000.
        "recompiles": found.recompiles,
        "fallback_ops": msgspec.to_builtins(found.fallback_ops),
        "source_files": msgspec.to_builtins(found.source_files),
        "compiled": msgspec.to_builtins(found.graphs),
        "unread": found.verdict.unread,
    }


def _source(one: Any) -> dict[str, Any]:
    import msgspec

    return dict(msgspec.to_builtins(one))
