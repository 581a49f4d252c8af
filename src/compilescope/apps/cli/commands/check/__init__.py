"""`compilescope check`: the gate for CI, which fails a program beyond its limits or baseline."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from compilescope.apps.cli.interpreters import tell_missing_torch
from compilescope.apps.cli.options import (
    RUN_NAME,
    dir_option,
    force_option,
    home_folder,
    registry_pages,
)
from compilescope.apps.cli.output import all_option
from compilescope.apps.cli.program import (
    ProgramCommand,
    Words,
    launch_program,
    program_options,
    verdict_of,
    warn_of_lost_end,
)
from compilescope.apps.cli.progress import working
from compilescope.base.errors import ToolError
from compilescope.base.settings import in_github_actions

if TYPE_CHECKING:
    from compilescope.apps.cli.commands.check.options import CheckOptions
    from compilescope.apps.cli.commands.check.output import OutputForms
    from compilescope.record.header import RunHeader
    from compilescope.report.section import Reading

GROUP = "Gate"

_FILE = click.Path(path_type=Path)
_COUNT = click.IntRange(min=0)


class _CheckCommand(ProgramCommand):
    # Not those that a training script may well have itself, such as --backend.
    may_follow = frozenset(
        {
            *("breaks", "recompiles", "graphs", "eager", "failures", "coverage", "own"),
            *("violations", "differences", "slowdown", "against"),
            *("baseline", "no_baseline", "update_baseline"),
            *("annotations", "junit", "sarif", "as_json", "git", "form"),
        }
    )

    headings: ClassVar[dict[str, tuple[str, ...]]] = {
        "Limits": (
            *("breaks", "recompiles", "graphs", "eager", "failures", "violations", "differences"),
            *("coverage", "slowdown", "against"),
        ),
        "Another version": ("git", "form"),
        "What counts": ("own", "strict", "baseline", "no_baseline", "update_baseline"),
        "Files and annotations": ("annotations", "junit", "sarif", "force"),
    }

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_usage(ctx, formatter)
        for rest in ("--run RUN", "--git REV SCRIPT [ARGS]..."):
            formatter.write_usage("compilescope check", f"[OPTIONS] {rest}", prefix="       ")


@click.command(
    "check",
    cls=_CheckCommand,
    short_help="Run a program and fail if it exceeds limits on graph breaks or recompiles.",
    help="Run a program under capture, or take a recorded run with --run, and check its graph "
    "breaks, recompiles, eager fallbacks and failures against limits, a committed "
    "baseline, or both. With neither, any of them fails the check. With --git, compare the program "
    "with itself at a commit instead: what is new there, or slower, fails the check.\n\n"
    "Exit status: 0 "
    "within the limits, 1 a limit is exceeded or something is new, 2 inconclusive. "
    "Limits can also be set in [tool.compilescope] of pyproject.toml; the command line "
    "wins. Everything after SCRIPT, -m, -c, --pytest or --torchrun belongs to the "
    "program, except limit, baseline and output options; everything after -- belongs to "
    "the program.",
)
@click.option(
    "--run", "run", type=RUN_NAME, metavar="RUN", help="Check a recorded run instead of a program."
)
@click.option("--max-breaks", "breaks", type=_COUNT, metavar="N", help="At most N graph breaks.")
@click.option(
    "--max-recompiles", "recompiles", type=_COUNT, metavar="N", help="At most N recompiles."
)
@click.option("--max-graphs", "graphs", type=_COUNT, metavar="N", help="At most N graphs.")
@click.option(
    "--max-eager",
    "eager",
    type=_COUNT,
    metavar="N",
    help="At most N functions that fell back to eager.",
)
@click.option(
    "--max-failures",
    "failures",
    type=_COUNT,
    metavar="N",
    help="At most N failed compilations. [default: 0 if any limit is set]",
)
@click.option(
    "--max-violations",
    "violations",
    type=_COUNT,
    metavar="N",
    help="At most N places that a device does not support; needs a backend that checks a device.",
)
@click.option(
    "--max-differences",
    "differences",
    type=_COUNT,
    metavar="N",
    help="At most N values that differ from their reference, as in a run of `diff`.",
)
@click.option(
    "--min-coverage",
    "coverage",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="At least this share of time inside compiled graphs; turns on timing.",
)
@click.option(
    "--max-slowdown",
    "slowdown",
    type=click.FloatRange(min=0, min_open=True),
    metavar="FACTOR",
    help="Of a benchmark run: at most FACTOR times the time of eager mode, such as 1.05.",
)
@click.option(
    "--against",
    type=RUN_NAME,
    metavar="RUN",
    help="For --max-slowdown: compare with this earlier benchmark run instead of eager mode.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Count every recompile, also those for versions that the program needs, such as "
    "training and evaluation.",
)
@click.option("--own/--no-own", default=None, help="Count only causes in your own files.")
@click.option(
    "--baseline",
    type=_FILE,
    metavar="FILE",
    help=(
        "Fail on anything FILE does not accept. [default: compilescope-baseline.json, if it exists]"
    ),
)
@click.option("--no-baseline", is_flag=True, help="Ignore any baseline.")
@click.option("--update-baseline", is_flag=True, help="Accept everything found: write the file.")
@click.option(
    "--annotations/--no-annotations",
    default=None,
    help="Print GitHub annotations. [default: in GitHub Actions]",
)
@click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit XML.")
@click.option("--sarif", type=_FILE, metavar="FILE", help="Write SARIF.")
@click.option(
    "--git",
    metavar="REV",
    help="Compare the working tree with this commit: new causes and slower warm calls fail.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("terminal", "md", "sarif", "json")),
    help="With --git: the output format; md is for a pull request.",
)
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON as the last line of stdout.")
@all_option
@program_options
@dir_option
@click.pass_obj
def COMMAND(target: Words, /, **given: Any) -> int:
    return verdict_of(lambda: _check(target, given))


def _check(target: Words, given: dict[str, Any]) -> int:
    from compilescope.apps.cli.commands.check.options import ask
    from compilescope.apps.cli.commands.check.output import OutputForms

    if given["git"] is not None:
        from compilescope.apps.cli.commands.check.commits import check_commits

        return check_commits(target, given)
    if given["form"] is not None:
        raise ToolError("--format needs --git; for other checks use --json, --sarif or --junit.")
    asked = ask(target, given)
    annotations = given["annotations"]
    wanted = OutputForms(
        as_json=given["as_json"],
        annotations=in_github_actions() if annotations is None else annotations,
        junit=given["junit"],
        sarif=given["sarif"],
        force=given["force"],
        after_program=given["run"] is None,
        everything=given["everything"],
    )
    wanted.check()
    reading, ran = _reading(target, given, timed=asked.limits.coverage is not None)
    asked = asked.for_run(reading)
    if given["update_baseline"]:
        return _update(asked, wanted, reading)
    return _judge(asked, wanted, reading, ran)


def _reading(target: Words, given: dict[str, Any], *, timed: bool) -> tuple[Reading, Path | None]:
    """The run, and its folder where it is of a program that was run for this check."""
    from compilescope.record.home import find_run

    if given["run"] is not None:
        folder = find_run(home_folder(given["home"]), given["run"])
        return _read(folder, strict=given["strict"]), None
    outcome = launch_program(
        target,
        home=given["home"],
        compile_all=given["compile_all"],
        compile_names=given["compile_names"],
        backend=given["backend"],
        timed=timed,
    )
    warn_of_lost_end(outcome)
    return _read(outcome.folder, outcome.header, strict=given["strict"]), outcome.folder


def _read(folder: Path, header: RunHeader | None = None, *, strict: bool = False) -> Reading:
    from compilescope.record.run import read_run
    from compilescope.report.section import Reading

    with working("check", "reading the run") as work:
        reading = Reading(read_run(folder, header=header), pages=registry_pages(), strict=strict)
        work.show("finding causes")
        _ = reading.digest  # It takes long in a big run, and is kept.
    return reading


def _judge(
    asked: CheckOptions, wanted: OutputForms, reading: Reading, ran: Path | None = None
) -> int:
    from compilescope.apps.cli.commands.check.output import EXIT_CODES, say, write_files
    from compilescope.knowledge.analysis.gate.verdict import judge
    from compilescope.record.command_run import append_bodies
    from compilescope.report.document import record_of
    from compilescope.report.gate import gate_document

    judgement = judge(
        reading.digest,
        asked.limits,
        baseline=asked.accepted,
        own=asked.own,
        earlier=asked.earlier,
    )
    if ran is not None:
        # A recorded run is only read: it may be somebody else's, and limits change.
        append_bodies(ran, [asked.outcome(judgement)])
    files = write_files(wanted, judgement, reading, own=asked.own, baseline=asked.accepted)
    terms = asked.terms(reading.digest.run)
    record = record_of(reading)
    document = gate_document(
        judgement, terms, root=reading.root, record=record, pages=reading.pages
    )
    code = files.exit_code(EXIT_CODES[judgement.outcome])
    value = asked.value(judgement, reading, code, files.written)
    say(wanted, judgement, document, value, asked.rest(reading.digest.run))
    tell_missing_torch(reading.digest)
    return code


def _update(asked: CheckOptions, wanted: OutputForms, reading: Reading) -> int:
    """Write what was found as what is accepted, unless less may have been found than there is."""
    from compilescope.apps.cli.commands.check.output import say, write_files
    from compilescope.knowledge.analysis.findings import findings
    from compilescope.knowledge.analysis.gate.baseline import baseline_of, write_baseline
    from compilescope.knowledge.analysis.gate.doubts import blind_spot, doubts
    from compilescope.knowledge.analysis.gate.verdict import GateLimits, judge
    from compilescope.knowledge.analysis.json_form import findings_json
    from compilescope.report.gate import update_document

    seen, file, before = reading.digest, str(asked.baseline_file), asked.accepted or ()
    unsure = doubts(seen)
    if unsure:
        why = f"The baseline {file} was not updated: {unsure[0].message}."
        print(f"compilescope: error: {why}", file=sys.stderr)
        return _judge(replace(asked, limits=GateLimits(), baseline=None), wanted, reading)
    blind = blind_spot(seen, "baseline")
    if blind:
        raise ToolError(f"The baseline {file} was not updated: {blind}.")
    found = [finding for finding in findings(seen) if finding.own or not asked.own]
    after = baseline_of(found, root=seen.root, torch=seen.torch, before=before)
    if after != asked.baseline:
        write_baseline(Path(file), after)
    asked = replace(asked, limits=GateLimits(), baseline=after)
    judgement = judge(seen, asked.limits, baseline=after.findings, own=asked.own)
    old = {(known.kind, known.fingerprint) for known in before}
    added = tuple(f for f in judgement.known if (f.kind, f.fingerprint) not in old)
    removed = tuple(known for known in before if known not in after.findings)
    files = write_files(wanted, judgement, reading, own=asked.own, baseline=after.findings)
    document = update_document(added, removed, len(found) - len(added), file=file, root=seen.root)
    code = files.exit_code(0)
    value = asked.value(judgement, reading, code, {"baseline": file, **files.written})
    say(wanted, None, document, {**value, "added": findings_json(added), "removed": removed})
    return code
