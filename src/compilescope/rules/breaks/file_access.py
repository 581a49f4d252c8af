"""Files opened, read or closed inside compiled code."""

from __future__ import annotations

from compilescope.rules.breaks._trees import called
from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example


def _applies(cause: Cause) -> bool:
    if called(cause.spot.expression) in ("open", "io.open", "input"):
        return True
    return cause.says("TextIOWrapper", "BufferedReader", "BufferedWriter", "builtin open")


def _why(cause: Cause) -> str:
    return f"`{cause.text}` reaches for a file or a terminal, which no graph can do."


def _remedies(cause: Cause) -> list[Remedy]:
    return [
        source(
            f"Do `{cause.text}` outside `{cause.function}`: read before the compiled call, or collect "
            "what is to be written and write it after."
        )
    ]


RULE = BreakRule(
    id="file-access",
    category="unsupported-builtin",
    order=60,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import os
import torch

def f(x):
    stream = open(os.devnull)
    return x + 1

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import os
import torch

def f(x):
    return x + 1

with open(os.devnull):
    torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
    ),
)
