"""A size of 0 or 1, which Dynamo keeps apart even where sizes are dynamic."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, config, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import dynamo_name, shown, size_of, wrapper_note

_SMALL = ("0", "1")


def _applies(miss: Miss) -> bool:
    if size_of(miss.cause.subject) is None:
        return False
    if miss.cause.kind == "SHAPE":
        return miss.cause.actual in _SMALL and miss.cause.guard.startswith("2 <= ")
    return miss.cause.actual in _SMALL or miss.cause.expected in _SMALL


def _parts(miss: Miss) -> tuple[str, int]:
    return size_of(miss.cause.subject) or (miss.cause.subject, 0)


def _why(miss: Miss) -> str:
    tensor, dim = _parts(miss)
    if miss.cause.expected in _SMALL:
        change = f"was {miss.cause.expected} at the compilation and is {miss.cause.actual} now"
    else:
        change = f"is {miss.cause.actual}"
    return (
        f"Dimension {dim} of `{shown(tensor)}` {change}. A size of 1 broadcasts and a size of 0 is empty, so Dynamo never lets "
        f"them share a graph with other sizes, whatever is marked dynamic.{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    tensor, dim = _parts(miss)
    text, name = shown(tensor), dynamo_name(tensor)
    remedies = [
        source(
            f"Pad `{text}` so that dimension {dim} is at least 2, and cut the result; or leave it, since it costs one compilation for 0 "
            f"and one for 1, no more. A warm-up call with a size of 1 wastes the first compilation: warm up with a real size."
        ),
        source(
            f"`torch._dynamo.decorators.mark_unbacked({text}, {dim})` before each call makes even these sizes dynamic. Code that branches on "
            "the size, or broadcasts along it, then breaks the graph or fails."
        ),
    ]
    if name:
        remedies.append(
            config(
                f'`torch.compiler.config.unbacked_sources = "{name}"` does the same without touching the call, for every dimension of '
                f"`{text}`, at the same price."
            )
        )
    return remedies


RULE = GuardRule(
    id="size-zero-one",
    order=210,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x):
    return x * 2

for size in (3, 4, 1, 0):
    f(torch.ones(size))
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x):
    return x * 2

for size in (3, 4, 1, 0):
    padded = torch.nn.functional.pad(torch.ones(size), (0, max(0, 2 - size)))
    f(padded)[:size]
""",
            configured="""import torch
import torch.compiler.config

@torch.compile(backend="eager", dynamic=True)
def f(x):
    return x * 2

with torch.compiler.config.patch(unbacked_sources="L['x']"):
    for size in (3, 4, 1, 0):
        f(torch.ones(size))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, w):
    return (x @ w).relu()

for size in (1, 5, 7):
    f(torch.ones(size, 4), torch.ones(4, 4))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, w):
    return (x @ w).relu()

for size in (1, 5, 7, 0):
    x = torch.ones(size, 4)
    torch._dynamo.decorators.mark_unbacked(x, 0)
    f(x, torch.ones(4, 4))
""",
        ),
    ),
)
