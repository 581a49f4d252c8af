"""Files opened, read or closed inside compiled code."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.breaks._trees import called
from compilescope.rules.causes.rule import BreakRule, Cause


def _applies(cause: Cause) -> bool:
    if called(cause.spot.expression) in ("open", "io.open", "input"):
        return True
    return cause.says("TextIOWrapper", "BufferedReader", "BufferedWriter", "builtin open")


def _why(cause: Cause) -> str:
    return f"`{cause.text}` accesses a file or a terminal, which a graph can't do."


def _remedies(cause: Cause) -> list[Remedy]:
    return [
        source(
            f"Do `{cause.text}` in the caller: pass what it reads to `{cause.function}`, and have "
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
