"""`compilescope check`: the gate for CI. Is what a program loses within the limits, is any new?"""

from __future__ import annotations

import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.cli.options import dir_option, home_folder, registry_pages
from compilescope.cli.program import (
    ProgramCommand,
    Words,
    launch_program,
    program_options,
    warn_of_lost_end,
)
from compilescope.errors import ToolError
from compilescope.settings import in_github_actions

if TYPE_CHECKING:
    from compilescope.cli.asked import Asked
    from compilescope.cli.verdict import Wanted
    from compilescope.report.section import Reading

_FILE = click.Path(path_type=Path)
_COUNT = click.IntRange(min=0)


class _CheckCommand(ProgramCommand):
    # Not those that a training script may well have itself, such as --backend.
    may_follow = frozenset(
        {
            *("breaks", "recompiles", "graphs", "eager", "failures", "coverage", "own"),
            *("baseline", "no_baseline", "update_baseline"),
            *("annotations", "junit", "sarif", "as_json"),
        }
    )

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_usage(ctx, formatter)
        formatter.write_usage("compilescope check", "[OPTIONS] --run RUN", prefix="       ")


@click.command(
    "check",
    cls=_CheckCommand,
    short_help="Run a program and fail where it loses more than the limits allow.",
    help="Run a program under capture, or take a recorded run with --run, and hold what was lost "
    "against limits, against a committed baseline, or both. Without any, nothing may be lost.\n\n"
    "Exit status: 0 within the limits, 1 exceeded or something new, 2 could not tell. Limits may "
    "stand in [tool.compilescope] of pyproject.toml; the command line wins. "
    "Everything after SCRIPT, -m, -c, --pytest or --torchrun belongs to the program, but for "
    "limits, baseline and output options, which may follow it; after -- all is the program's.",
)
@click.option("--run", "run", metavar="RUN", help="Judge a recorded run instead of a program.")
@click.option("--max-breaks", "breaks", type=_COUNT, metavar="N", help="Graph break sites.")
@click.option("--max-recompiles", "recompiles", type=_COUNT, metavar="N", help="Recompiles.")
@click.option("--max-graphs", "graphs", type=_COUNT, metavar="N", help="Graphs.")
@click.option("--max-eager", "eager", type=_COUNT, metavar="N", help="Functions left to eager.")
@click.option(
    "--max-failures",
    "failures",
    type=_COUNT,
    metavar="N",
    help="Failed compilations. [default: 0 once there is any limit]",
)
@click.option(
    "--min-coverage",
    "coverage",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="Time inside compiled graphs; the program is then timed.",
)
@click.option("--own/--no-own", default=None, help="Count only causes in your own files.")
@click.option(
    "--baseline",
    type=_FILE,
    metavar="FILE",
    help="Fail on what FILE does not accept. [default: compilescope-baseline.json, if it is there]",
)
@click.option("--no-baseline", is_flag=True, help="Hold it against no baseline.")
@click.option("--update-baseline", is_flag=True, help="Accept all that was found: write the file.")
@click.option(
    "--annotations/--no-annotations",
    default=None,
    help="Print GitHub annotations. [default: in GitHub Actions]",
)
@click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit XML.")
@click.option("--sarif", type=_FILE, metavar="FILE", help="Write SARIF.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON as the last line of stdout.")
@program_options
@dir_option
@click.pass_obj
def COMMAND(target: Words, /, **given: Any) -> int:
    try:
        return _check(target, given)
    except (ToolError, click.ClickException, BrokenPipeError):
        raise
    except Exception:
        # Python would leave with 1, and in a gate that means "exceeded". A bug is no verdict.
        traceback.print_exc()
        return 2


def _check(target: Words, given: dict[str, Any]) -> int:
    from compilescope.cli.asked import ask
    from compilescope.cli.verdict import Wanted

    asked = ask(target, given)
    annotations = given["annotations"]
    wanted = Wanted(
        as_json=given["as_json"],
        annotations=in_github_actions() if annotations is None else annotations,
        junit=given["junit"],
        sarif=given["sarif"],
        after_program=given["run"] is None,
    )
    wanted.check()
    reading = _reading(target, given, timed=asked.limits.coverage is not None)
    if given["update_baseline"]:
        return _update(asked, wanted, reading)
    return _judge(asked, wanted, reading)


def _reading(target: Words, given: dict[str, Any], *, timed: bool) -> Reading:
    from compilescope.model.home import find_run
    from compilescope.model.run import read_run
    from compilescope.report.section import Reading

    if given["run"] is not None:
        recorded = read_run(find_run(home_folder(given["home"]), given["run"]))
        return Reading(recorded, pages=registry_pages())
    outcome = launch_program(
        target,
        home=given["home"],
        compile_all=given["compile_all"],
        compile_names=given["compile_names"],
        backend=given["backend"],
        timed=timed,
    )
    warn_of_lost_end(outcome)
    recorded = read_run(outcome.folder, header=outcome.header)
    return Reading(recorded, pages=registry_pages())


def _judge(asked: Asked, wanted: Wanted, reading: Reading) -> int:
    from compilescope.cli.verdict import EXIT_CODES, say, write_files
    from compilescope.report.document import record_of
    from compilescope.report.gate import gate_document
    from compilescope.rules.gate.judging import judge

    judgement = judge(reading.digest, asked.limits, baseline=asked.accepted, own=asked.own)
    files = write_files(wanted, judgement, reading, own=asked.own, baseline=asked.accepted)
    terms = asked.terms(reading.digest.run)
    record = record_of(reading)
    document = gate_document(
        judgement, terms, root=reading.root, record=record, pages=reading.pages
    )
    code = files.exit_code(EXIT_CODES[judgement.outcome])
    say(wanted, judgement, document, asked.value(judgement, reading, code, files.written))
    return code


def _update(asked: Asked, wanted: Wanted, reading: Reading) -> int:
    """Write what was found as what is accepted, unless less may have been found than there is."""
    from compilescope.cli.verdict import say, write_files
    from compilescope.report.gate import update_document
    from compilescope.rules.findings import findings
    from compilescope.rules.gate.baseline import baseline_of, write_baseline
    from compilescope.rules.gate.doubts import blind_spot, doubts
    from compilescope.rules.gate.judging import Limits, judge

    seen, file, before = reading.digest, str(asked.baseline_file), asked.accepted or ()
    unsure = doubts(seen)
    if unsure:
        why = f"The baseline {file} was not updated: {unsure[0].message}."
        print(f"compilescope: error: {why}", file=sys.stderr)
        return _judge(replace(asked, limits=Limits(), baseline=None), wanted, reading)
    blind = blind_spot(seen, "baseline")
    if blind:
        raise ToolError(f"The baseline {file} was not updated: {blind}.")
    found = [finding for finding in findings(seen) if finding.own or not asked.own]
    after = baseline_of(found, root=seen.root, torch=seen.torch, before=before)
    if after != asked.baseline:
        write_baseline(Path(file), after)
    asked = replace(asked, limits=Limits(), baseline=after)
    judgement = judge(seen, asked.limits, baseline=after.findings, own=asked.own)
    old = {(known.kind, known.fingerprint) for known in before}
    added = tuple(f for f in judgement.known if (f.kind, f.fingerprint) not in old)
    removed = tuple(known for known in before if known not in after.findings)
    files = write_files(wanted, judgement, reading, own=asked.own, baseline=after.findings)
    document = update_document(added, removed, len(found) - len(added), file=file, root=seen.root)
    code = files.exit_code(0)
    value = asked.value(judgement, reading, code, {"baseline": file, **files.written})
    say(wanted, None, document, {**value, "added": added, "removed": removed})
    return code
