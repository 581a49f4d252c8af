"""Random numbers from Python or NumPy inside compiled code."""

from __future__ import annotations

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
        f"`{cause.text}` draws from a generator outside torch. Its next number, and the state it leaves "
        "behind, are no part of a graph."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    return [
        source(
            f"Draw with torch: `torch.rand(())` (or `torch.randn`, `torch.randint`) in place of "
            f"`{cause.text}` stays in the graph as a tensor."
        ),
        source(
            f"Or draw before the compiled call and pass the number to `{cause.function}` as a tensor; as "
            "a Python float it would be a constant and recompile with every value."
        ),
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

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch

def f(x):
    return x * torch.randn(())

torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        Example(
            bad="""import random
import torch

def f(x):
    return x * random.random()

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import random
import torch

def f(x, scale):
    return x * scale

torch.compile(f, backend="eager")(torch.ones(3), torch.tensor(random.random()))
""",
        ),
    ),
)
