"""Random numbers from Python or NumPy inside compiled code."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.breaks._trees import called
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _applies(case: BreakCase) -> bool:
    name = called(case.spot.expression)
    if name.startswith("random.") or "np.random." in case.text or "numpy.random." in case.text:
        return True
    # torch 2.15 goes into the methods of a generator, and names the one it stops at.
    return case.says("Random.random", "RandomVariable()", "qualname: Random.", "numpy.random")


def _why(case: BreakCase) -> str:
    return (
        f"`{case.text}` draws from a random generator outside torch. Its next number, and the "
        "state it leaves behind, can't be part of a graph."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    if isinstance(case.spot.statement, (ast.If, ast.While)):
        return [
            source(
                f"Evaluate `{case.text}` in the caller and pass the answer to `{case.function}` "
                "as a bool: one compilation for each of the two. A tensor would break the graph "
                "again."
            )
        ]
    return [
        source(
            f"Call `{case.text}` in the caller and pass the result to `{case.function}`. Pass a "
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
