"""`minify` of Python source: for a crash, a graph break, or a recompile."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

from compilescope.cli.commands.minify.shared import (
    INTERRUPTED,
    Output,
    keep_run,
    measured,
    progress_bar,
    say_how,
    say_run,
    size_facts,
)
from compilescope.cli.options import in_python, print_json, write_whole
from compilescope.processes.deadline import clock

if TYPE_CHECKING:
    from compilescope.minify.source.choice import ChosenFinding
    from compilescope.minify.source.findings import SourceFinding
    from compilescope.minify.source.minifier import SourceRepro
    from compilescope.minify.source.program import SourceProgram
    from compilescope.minify.source.program_sandbox import ProgramSandbox

_KEYS = (
    *("kind", "what", "gb_id", "rule", "reason", "call", "subject", "installed"),
    *("file", "line", "function", "source", "title", "guard", "logged", "echo", "error"),
)
"""Of a finding, in JSON."""


def minify_source(
    program: SourceProgram,
    choice: ChosenFinding,
    stage: ProgramSandbox,
    output: Output,
    given: dict[str, Any],
) -> int:
    from compilescope.minify.engine import ReductionLimits
    from compilescope.minify.source.minifier import MinifyOptions, minimise

    begun = clock()
    with progress_bar("tokens") as bar:
        limits = ReductionLimits(deadline=given["deadline"])
        options = MinifyOptions(given["jobs"], output.state, limits, progress=bar)
        repro = minimise(program, choice.finding, stage, options)
    seconds = clock() - begun
    if repro.script:
        write_whole(output.path, repro.script)
        if not repro.reduction.stopped:
            output.state.unlink(missing_ok=True)
    run = _kept(choice, repro, output, seconds, given)
    if given["as_json"]:
        print_json({**_source_json(program, choice, repro, output, seconds), "run": run})
    else:
        _say_source(program, choice, repro, output, seconds)
        say_run(run)
    if repro.reduction.interrupted:
        return INTERRUPTED
    return 0 if repro.script else 2


def _kept(
    choice: ChosenFinding,
    repro: SourceRepro,
    output: Output,
    seconds: float,
    given: dict[str, Any],
) -> str | None:
    from compilescope.model.bodies import MinifyOutcome
    from compilescope.model.stack import Frame, origin_of

    cause = choice.finding
    file = os.path.abspath(cause.file) if os.path.exists(cause.file) else cause.file
    outcome = MinifyOutcome(
        cause.predicate,
        cause.title,
        path=os.path.abspath(output.path) if repro.script else "",
        reason=repro.reason,
        lines_before=repro.start_lines,
        lines=repro.lines,
        needs=repro.needs,
        **size_facts(repro.reduction, seconds),
    )
    place = Frame(file, cause.line, cause.function, source=cause.source, origin=origin_of(file))
    return keep_run(output, outcome, place if cause.line else None, given, repro.torch)


def _say_source(
    program: SourceProgram,
    choice: ChosenFinding,
    repro: SourceRepro,
    output: Output,
    seconds: float,
) -> None:
    cause = choice.finding
    print(told_cause(cause))
    print(f"\n{repro.program.rstrip()}\n")
    if repro.script and repro.reason:
        print(f"Repro, not verified in a fresh process ({repro.reason}): {output.path}")
    elif repro.script:
        print(f"Repro, verified in a fresh process: {output.path}")
    else:
        print(f"No repro: {repro.reason}.")
    for name, why in repro.needs.items():
        print(f"It still imports {name}: {why}.")
    print(f"{repro.start_lines} -> {repro.lines} lines.")
    say_how(repro.reduction, seconds, output)
    for other in choice.others:
        print(f"\n{told_cause(other)}\n  {_command(program, other)}")


def told_cause(cause: SourceFinding) -> str:
    if not cause.line:
        return f"{cause.predicate}: {cause.title}"
    file = os.path.relpath(cause.file) if os.path.isabs(cause.file) else cause.file
    return f"{file}:{cause.line}: {cause.predicate}: {cause.title}"


def _command(program: SourceProgram, cause: SourceFinding) -> str:
    flag = {"module": ["-m"], "code": ["-c"]}.get(program.original.kind, [])
    site = ["--site", f"{os.path.basename(cause.file)}:{cause.line}"] if cause.line else []
    # Our options come first: what follows the program may be its own.
    words = ["--predicate", cause.predicate, *site, *flag, *program.original.words]
    return shlex.join(["compilescope", "minify", *in_python(), *words])


def _finding_json(finding: SourceFinding) -> dict[str, Any]:
    known = {"kind": finding.predicate, "rule": finding.rule or ""}
    return {name: known.get(name, getattr(finding, name)) for name in _KEYS}


def _source_json(
    program: SourceProgram,
    choice: ChosenFinding,
    repro: SourceRepro,
    output: Output,
    seconds: float,
) -> dict[str, Any]:
    return {
        "predicate": choice.finding.predicate,
        "cause": _finding_json(choice.finding),
        "repro": str(output.path) if repro.script else None,
        "reason": repro.reason,
        "program": repro.program,
        "lines_before": repro.start_lines,
        "lines": repro.lines,
        "needs": repro.needs,
        **measured(repro.reduction, seconds),
        "others": [
            {"cause": _finding_json(other), "command": _command(program, other)}
            for other in choice.others
        ],
    }
