"""Random numbers from Python or NumPy inside compiled code."""

from __future__ import annotations

import ast

from compilescope.rules.breaks._trees import called
from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example


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
    examples=(
        Example(
            bad="""import random
import torch

rng = random.Random(0)

def f(x):
    return x * rng.gauss(0.0, 1.0)

print(torch.compile(f, backend="eager")(torch.ones(3)))
""",
            good="""import random
import torch

rng = random.Random(0)

def f(x, scale):
    return x * scale

scale = torch.tensor(rng.gauss(0.0, 1.0), dtype=torch.float64)
print(torch.compile(f, backend="eager")(torch.ones(3), scale))
""",
        ),
        Example(
            bad="""import random
import torch

random.seed(0)

def f(x):
    return x * random.random()

print(torch.compile(f, backend="eager")(torch.ones(3)))
""",
            good="""import random
import torch

random.seed(0)

def f(x, scale):
    return x * scale

scale = torch.tensor(random.random(), dtype=torch.float64)
print(torch.compile(f, backend="eager")(torch.ones(3), scale))
""",
        ),
    ),
)
