"""`minify` of a graph: for a crash, a difference in numbers, or a violation."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compilescope.apps.cli.commands.minify.shared import (
    INTERRUPTED,
    Output,
    issue_facts,
    keep_run,
    measured,
    memory_for_candidates,
    progress_bar,
    say_how,
    say_run,
    size_facts,
)
from compilescope.apps.cli.options import in_python, print_json
from compilescope.base.errors import ToolError
from compilescope.base.processes.cleaner import transient
from compilescope.base.processes.deadline import clock

if TYPE_CHECKING:
    from compilescope.change.minify.graph.minifier import Minified


def minify_graph(
    kind: str,
    words: tuple[str, ...],
    output: Output,
    given: dict[str, Any],
    *,
    known: bool = False,
) -> int:
    """`known`: the program was seen to crash; only the graph at which it does is looked for."""
    if kind != "script":
        raise ToolError(f"--predicate {given['predicate']} needs a script.")
    from compilescope.change.minify.engine import ReductionLimits
    from compilescope.change.minify.graph.search import Search, minify_program
    from compilescope.change.minify.source.findings import read_site

    site = read_site(given["site"]) if given["site"] else None
    search = Search(
        given["predicate"],
        given["device"] or "",
        given["test_backend"] or "",
        site.file if site else "",
        site.line if site else None,
        number=given["violation"] or 1,
        known=known,
        deadline=given["deadline"],
    )
    begun = clock()
    with transient(output.records):
        output.records.mkdir(parents=True, exist_ok=True)
        with progress_bar("operations") as bar:
            done = minify_program(
                Path(words[0]),
                words[1:],
                search,
                output.path,
                folder=output.records,
                limit_s=given["limit"] or 120.0,
                memory_bytes=memory_for_candidates(),
                jobs=given["jobs"],
                state=output.state,
                limits=ReductionLimits(deadline=given["deadline"]),
                progress=bar,
                issue=given["predicate"] != "violation",
            )
    seconds = clock() - begun
    if done.repro.path is not None and not done.reduction.stopped:
        output.state.unlink(missing_ok=True)
    run = _kept(done, output, seconds, given)
    path = str(done.repro.path) if done.repro.path is not None else None
    if given["as_json"]:
        facts = {"predicate": given["predicate"], "repro": path, "reason": done.repro.reason}
        facts |= issue_facts(done.issue)
        more = {**measured(done.reduction, seconds), **_violations(words, done, given)}
        print_json({**facts, **more, "run": run})
    else:
        if done.shown:
            print(f"{_counted(done)}: {done.shown[done.number - 1].words}")
        print(done.repro.words)
        if done.issue is not None:
            print(done.issue.words)
        say_how(done.reduction, seconds, output, "operations")
        for each in _violations(words, done, given).get("others", []):
            print(f"\nViolation {each['number']}: {each['text']}\n  {each['command']}")
        say_run(run)
    if done.reduction.interrupted:
        return INTERRUPTED
    return 0 if path else 2


def _kept(done: Minified, output: Output, seconds: float, given: dict[str, Any]) -> str | None:
    from compilescope.record.bodies import MinifyOutcome
    from compilescope.record.stack import Frame, origin_of

    outcome = MinifyOutcome(
        given["predicate"],
        done.shown[done.number - 1].words if done.shown else done.title,
        path=str(done.repro.path.absolute()) if done.repro.path is not None else "",
        reason=done.repro.reason,
        unit="operations",
        **size_facts(done.reduction, seconds),
    )
    file = done.file
    place = Frame(file, done.line or 0, "", origin=origin_of(file)) if done.line else None
    return keep_run(output, outcome, place, given, done.torch)


def _counted(done: Minified) -> str:
    many = len(done.shown)
    return f"Violation {done.number} of {many}" if many > 1 else "Violation"


def _violations(words: tuple[str, ...], done: Minified, given: dict[str, Any]) -> dict[str, Any]:
    """For JSON: the one that the repro shows, and the others, each with how to ask for it."""
    if not done.shown:
        return {}
    told = [
        {
            "number": number,
            "rule": each.rule,
            "stage": each.stage,
            "op": each.op,
            "found": each.found,
            "file": each.file,
            "line": each.line,
            "text": each.words,
            "command": _command(words, number, given),
        }
        for number, each in enumerate(done.shown, 1)
    ]
    (own,) = [each for each in told if each["number"] == done.number]
    return {"violation": own, "others": [each for each in told if each is not own]}


def _command(words: tuple[str, ...], number: int, given: dict[str, Any]) -> str:
    options = ["--predicate", "violation", "--violation", str(number)]
    for name in ("site", "device"):
        if given[name]:
            options += [f"--{name}", given[name]]
    from compilescope.base.settings import mock_variables

    # What the environment asked to check is part of the question.
    rules = [f"{name}={value}" for name, value in mock_variables().items()]
    return shlex.join([*rules, "compilescope", "minify", *in_python(), *options, *words])
