"""How `fix` tells what came of it, in words or JSON; and `fix --list`: the fixes that there are."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from compilescope.apps.cli import output as terminal
from compilescope.apps.cli.commands.fix.delivery import is_lost
from compilescope.apps.cli.options import in_python, print_json
from compilescope.change.fixes.catalogue import all_fixes
from compilescope.record.fix_search import COUNTS, in_counts
from compilescope.report.fix_search import (
    FixFigure,
    FixLine,
    FixSearchView,
    fixing_document,
    how_proven,
    repertoire_document,
)
from compilescope.report.places import count

if TYPE_CHECKING:
    from compilescope.apps.cli.commands.fix.delivery import Delivery
    from compilescope.apps.cli.commands.fix.options import FixRequest
    from compilescope.change.repair.search.outcome import SearchResult
    from compilescope.record.fix_search import FixAttempt
    from compilescope.report.blocks import Style


def list_fixes(*, as_json: bool, everything: bool) -> None:
    lines = tuple(
        FixLine(
            id=fix.id,
            title=fix.title,
            rules=tuple(sorted(fix.rules)),
            kind=fix.kind,
            safe=fix.order < 100 and not fix.observable,
            why=fix.why,
        )
        for fix in all_fixes()
    )
    if as_json:
        examples = {fix.id: fix.examples for fix in all_fixes()}
        found = [
            {**msgspec.to_builtins(line), "examples": [_example(e) for e in examples[line.id]]}
            for line in lines
        ]
        print_json({"fixes": found})
        return
    terminal.tell(
        repertoire_document(lines), "compilescope fix --list --all", everything=everything
    )


def _example(example: Any) -> dict[str, str]:
    return {"bad": example.bad, "good": example.good, "note": example.note}


def tell(
    outcome: SearchResult, request: FixRequest, delivery: Delivery, *, as_json: bool, code: int
) -> None:
    if as_json:
        print_json(_value(outcome, request, delivery, code))
        return
    document = fixing_document(_fixing(outcome, request, delivery))
    # A second search to see the rest would take minutes: who reads a pipe gets all at once, who
    # sits at a terminal a file of it.
    cut = sys.stdout.isatty() and not request.everything
    terminal.tell(document, terminal.kept(document, "fix") if cut else "")


# For people


def _fixing(outcome: SearchResult, request: FixRequest, delivery: Delivery) -> FixSearchView:
    from compilescope.change.fixes.diffs import unified_diff

    root = request.target.root
    words = " ".join(" ".join(request.target.shown).split())
    return FixSearchView(
        title="compilescope fix",
        subtitle=words if len(words) <= 200 else words[:197] + "...",
        headline=tuple(_headline(outcome, request, delivery)),
        attempts=outcome.attempts,
        root=root,
        figures=tuple(_figures(outcome)),
        untimed=outcome.times.reason if outcome.times is not None else "",
        diff=unified_diff(outcome.originals, outcome.files, root),
        notes=(*outcome.notes, *delivery.remarks),
        left=outcome.left,
        uncovered=outcome.uncovered,
        placements=outcome.placements,
        next=tuple(_next(outcome, request, delivery)),
    )


def _headline(
    outcome: SearchResult, request: FixRequest, delivery: Delivery
) -> Iterator[tuple[str, Style]]:
    before, after = outcome.before, outcome.after
    kept = [each for each in outcome.attempts if each.kept]
    if kept and outcome.verdict == "verified":
        lost = in_counts(before, after, outcome.uncovered)
        number = len({(each.fix, each.diff) for each in kept})
        how = f", {how_proven(kept)}" if number > 1 else ""
        yield f"{count(number, 'fix', 'fixes')} verified{how}: {lost}.", "good"
    elif not is_lost(outcome):
        failed = bool(outcome.notes)
        words = "Nothing to fix in the part that ran." if failed else "Nothing to fix."
        yield words, "warn" if failed else "good"
    elif not outcome.attempts and outcome.notes:
        yield "Nothing was tried.", "bad"
    elif not outcome.attempts and request.options.rules:
        yield "Nothing to fix for the selected rules.", "good"
    else:
        yield f"No fix could be verified{f': {outcome.reason}' if outcome.reason else ''}.", "bad"
    if delivery.written:
        files = ", ".join(os.path.relpath(file) for file in delivery.written)
        yield f"Changed: {files}.", "good"
    if delivery.script is not None:
        yield _script_line(delivery)
    if delivery.problem:
        yield delivery.problem, "bad"


def _script_line(delivery: Delivery) -> tuple[str, Style]:
    """What running the script by itself showed."""
    proof = delivery.proof
    path = os.path.relpath(delivery.script or "")
    if proof is None or proof.verdict != "verified":
        return f"Written, but not verified by itself: {path} ({proof and proof.reason}).", "warn"
    same = f"same results on {count(len(proof.inputs), 'set')} of inputs" if proof.inputs else ""
    lost = count(proof.found.breaks, "graph break")
    seen = ", ".join(filter(None, [lost, "same output", same]))
    return f"Written, and verified by running it: {path} ({seen}).", "good"


def _figures(outcome: SearchResult) -> Iterator[FixFigure]:
    before, after = outcome.before, outcome.after
    if not any(each.kept for each in outcome.attempts):
        return
    for name, label in COUNTS.items():
        old, new = getattr(before, name), getattr(after, name)
        if old or new:
            yield FixFigure(label, old, new)
    if outcome.times is None:
        return
    for name, label in _TIMES.items():
        times = [getattr(part, name) for part in (outcome.times.before, outcome.times.after)]
        if name == "whole" and not outcome.times.imports:
            label = "the whole process, except importing torch"
        if any(times):
            yield FixFigure(label, *times)


_TIMES = {
    "steady": "a warm call",
    "first": "the first calls, with compilation",
    "whole": "the whole process",
}


def _next(
    outcome: SearchResult, request: FixRequest, delivery: Delivery
) -> Iterator[tuple[str, str]]:
    kept = [each for each in outcome.attempts if each.kept]
    proven = outcome.verdict == "verified" and bool(outcome.files or outcome.environment)
    program = list(request.again)
    if delivery.undo:
        yield "To undo:", delivery.undo
    if delivery.command:
        yield "To run it:", delivery.command
    elif proven and not delivery.written:
        from compilescope.record.stack import origin_of

        theirs = [file for file in outcome.files if origin_of(file) != "user"]
        if len(theirs) < len(outcome.files):
            # What was verified with changes to packages was not verified without them.
            rest = ", except those in installed packages" if theirs else ""
            again = ["--write", *program] if theirs or not outcome.run else ["--apply", outcome.run]
            yield f"To change your files{rest}:", _shown(again)
        script = "including third-party code" if theirs else "leaving your files unchanged"
        if request.target.kind != "torchrun":
            yield f"To write a separate script, {script}:", _shown(["--script", *program])
    if any(each.kept and not each.safe for each in kept):
        yield (
            "To use only fixes that change nothing you can observe:",
            _shown(["--safe-only", *program]),
        )
    if outcome.run:
        yield "For details:", shlex.join(["compilescope", "report", outcome.run])


def _shown(words: list[str]) -> str:
    return shlex.join(["compilescope", "fix", *in_python(), *words])


# For programs


def _value(
    outcome: SearchResult, request: FixRequest, delivery: Delivery, code: int
) -> dict[str, Any]:
    from compilescope.change.fixes.diffs import unified_diff

    before, after = outcome.before, outcome.after
    return {
        "run": outcome.run or None,
        "command": request.target.shown,
        "root": request.target.root,
        "verdict": outcome.verdict,
        "reason": outcome.reason,
        "breaks_before": before.breaks,
        "breaks_after": after.breaks,
        "recompiles_before": before.recompiles,
        "recompiles_after": after.recompiles,
        "before": before,
        "after": after,
        "fixes": [_attempt(each) for each in outcome.attempts],
        "diff": unified_diff(outcome.originals, outcome.files, request.target.root),
        "environment": outcome.environment,
        "script": delivery.script,
        "script_proof": delivery.proof,
        "written": delivery.written,
        "problem": delivery.problem or None,
        "times": outcome.times,
        "slower": outcome.times.slower if outcome.times is not None else None,
        "notes": [*outcome.notes, *delivery.remarks],
        "left": outcome.left,
        "uncovered": outcome.uncovered,
        "placements": outcome.placements,
        "exit_code": code,
    }


def _attempt(attempt: FixAttempt) -> dict[str, Any]:
    """All its fields; `kind` is that of the finding, as in `check --json`."""
    value = msgspec.structs.asdict(attempt)
    return {"kind": value.pop("finding"), **value}
