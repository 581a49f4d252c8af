"""Random numbers from Python or NumPy inside compiled code."""

from __future__ import annotations

import ast

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.breaks._trees import called
from compilescope.rules.causes.rule import BreakRule, Cause


def _applies(cause: Cause) -> bool:
    name = called(cause.spot.expression)
    if name.startswith("random.") or "np.random." in cause.text or "numpy.random." in cause.text:
        return True
    return cause.says("Random.random", "RandomVariable()", "numpy.random")


def _why(cause: Cause) -> str:
    return (
        f"`{cause.text}` draws from a random generator outside torch. Its next number, and the "
        "state it leaves behind, can't be part of a graph."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    if isinstance(cause.spot.statement, (ast.If, ast.While)):
        return [
            source(
                f"Evaluate `{cause.text}` in the caller and pass the answer to `{cause.function}` "
                "as a bool: one compilation for each of the two. A tensor would break the graph "
                "again."
            )
        ]
    return [
        source(
            f"Call `{cause.text}` in the caller and pass the result to `{cause.function}`. Pass a "
            "number as a tensor (float64 keeps all its digits); a Python number may cause "
            "recompiles."
        )
    ]


RULE = BreakRule(
    id="random-number",
    category="rng-device-state",
    order=32,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
