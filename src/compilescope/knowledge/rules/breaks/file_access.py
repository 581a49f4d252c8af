"""Files opened, read or closed inside compiled code."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.breaks._trees import called
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _applies(case: BreakCase) -> bool:
    if called(case.spot.expression) in ("open", "io.open", "input"):
        return True
    return case.says("TextIOWrapper", "BufferedReader", "BufferedWriter", "builtin open")


def _why(case: BreakCase) -> str:
    return f"`{case.text}` accesses a file or a terminal, which a graph can't do."


def _remedies(case: BreakCase) -> list[Remedy]:
    return [
        source(
            f"Do `{case.text}` in the caller: pass what it reads to `{case.function}`, and have "
            "that return what should be written."
        )
    ]


RULE = BreakRule(
    id="file-access",
    category="unsupported-builtin",
    order=60,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
