"""How `tune` tells what came of it, in words or JSON; and `tune --list`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from compilescope.cli import output as telling
from compilescope.cli.options import in_python, print_json
from compilescope.report.tuning import Tuned, candidates_document, tuning_document

if TYPE_CHECKING:
    from compilescope.cli.commands.fix.delivery import Handed
    from compilescope.cli.commands.tune.options import TuneRequest
    from compilescope.repair.delivery.script_proof import Proof
    from compilescope.tune.outcome import TuneResult


def list_candidates(*, as_json: bool, everything: bool) -> None:
    from compilescope.tune.catalogue import all_candidates

    rows = [(each.id, each.title, each.price) for each in all_candidates()]
    if as_json:
        print_json(
            {"candidates": [dict(zip(("id", "title", "price"), r, strict=True)) for r in rows]}
        )
        return
    telling.tell(candidates_document(rows), "compilescope tune --list --all", everything=everything)


def tell(result: TuneResult, asked: TuneRequest, handed: Handed, *, as_json: bool) -> None:
    if as_json:
        shown = value(result)
        if asked.plan is not None:
            shown |= {"script": handed.script, "script_proof": handed.proof}
        print_json(shown)
        return
    words = " ".join(" ".join(asked.target.shown).split())
    document = tuning_document(
        Tuned(
            subtitle=words if len(words) <= 200 else words[:197] + "...",
            outcome=result.outcome,
            attempts=result.attempts,
            told=tuple(_told(handed)),
            next=tuple(_next(result, asked, handed)),
        )
    )
    telling.tell(document, "")


def _told(handed: Handed) -> Iterator[str]:
    if handed.written:
        yield f"Changed: {', '.join(os.path.relpath(file) for file in handed.written)}."
    if handed.script is not None:
        yield _script_line(handed.script, handed.proof)
    if handed.problem:
        yield handed.problem
    yield from handed.remarks


def _script_line(script: str, proof: Proof | None) -> str:
    path = os.path.relpath(script)
    if proof is None or proof.verdict != "verified":
        return f"Written, but not verified by itself: {path} ({proof and proof.reason})."
    speed = next((each.words for each in proof.checks if each.name == "speed"), "")
    faster = f": {speed} faster a step than the original" if speed else ""
    return f"Written, and verified by running it in a fresh process{faster}: {path}."


def _next(result: TuneResult, asked: TuneRequest, handed: Handed) -> Iterator[tuple[str, str]]:
    program = list(asked.target.shown)
    if handed.undo:
        yield "To undo:", handed.undo
    if handed.command:
        yield "To run it:", handed.command
    elif result.outcome.verdict == "verified" and not handed.written:
        kept = [
            word for each in result.attempts if each.kept for word in ("--only", each.candidate)
        ]
        lower = ["--lower-precision"] if asked.wishes.lower_precision else []
        again = ["compilescope", "tune", *in_python(), "--write", *lower, *kept, *program]
        yield "To measure it again and change your files:", shlex.join(again)
    if (
        any(each.verdict == "apart" for each in result.attempts)
        and not asked.wishes.lower_precision
    ):
        again = ["compilescope", "tune", *in_python(), "--lower-precision", *program]
        yield "To use lower precision too:", shlex.join(again)
    if result.run:
        yield "For details:", shlex.join(["compilescope", "report", result.run])


def value(result: TuneResult) -> dict[str, Any]:
    """What --json prints."""
    outcome = result.outcome
    return {
        "step": outcome.step,
        "before_ms": outcome.before_ms,
        "after_ms": outcome.after_ms,
        "speedup": outcome.speedup,
        "speedup_ci": outcome.speedup_ci,
        "candidates": [
            {
                "id": each.candidate,
                "verdict": each.verdict,
                "speedup": each.speedup,
                "speedup_ci": each.speedup_ci,
                "numbers": each.numbers or None,
                "memory_bytes": each.memory_bytes,
                "compile_seconds": each.compile_seconds,
                "reason": each.reason,
            }
            for each in result.attempts
        ],
        "diff": outcome.diff,
    }
