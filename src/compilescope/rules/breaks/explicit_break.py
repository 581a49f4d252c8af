"""Breaks that someone asked for: `graph_break()` and `disable`."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, judgement, source
from compilescope.rules.breaks._trees import called
from compilescope.rules.causes.rule import BreakRule, Cause


def _applies(cause: Cause) -> bool:
    return cause.says(
        "torch._dynamo.graph_break()", "torch.compiler.disable()", "torch._dynamo.disable"
    )


def _in_torch(cause: Cause) -> bool:
    return cause.site.in_torch or (cause.says("graph_break()") and "graph_break" not in cause.text)


def _why(cause: Cause) -> str:
    if _in_torch(cause):
        return (
            f"torch itself requests a break inside `{cause.text}`. Removing it would gain you "
            "nothing."
        )
    if cause.says("disable"):
        return f"`{called(cause.spot.expression) or cause.text}` is marked to run eagerly."
    return f"`{cause.text}` requests a break here."


def _remedies(cause: Cause) -> list[Remedy]:
    if _in_torch(cause):
        return [judgement(f"Nothing to do: `{cause.text}` is benign and runs the same either way.")]
    if cause.says("disable"):
        name = called(cause.spot.expression) or "the function"
        return [
            source(
                f"If `{name}` must run eagerly, call it in the caller: compile the code before it "
                f"and the code after it in `{cause.function}` as two functions."
            )
        ]
    return [
        judgement(f"Find out why `{cause.text}` is there. Leave it while the reason still holds.")
    ]


RULE = BreakRule(
    id="explicit-break",
    category="explicit",
    order=5,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
