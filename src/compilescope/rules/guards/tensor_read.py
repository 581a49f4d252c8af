"""The value of a 0-dim tensor is read and kept as a constant."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import reader, shown

_READ = re.compile(r"(?P<tensor>[^\s()]+)\.item\(\)(?: == (?P<value>\S+))?")


def _applies(miss: Miss) -> bool:
    return miss.cause.kind == "SHAPE" and _READ.search(miss.cause.guard) is not None


def _tensor(miss: Miss) -> str:
    match = _READ.search(miss.cause.guard)
    return shown(match["tensor"]) if match else shown(miss.cause.subject)


def _why(miss: Miss) -> str:
    match = _READ.search(miss.cause.guard)
    value = f" ({match['value']} at the compilation)" if match and match["value"] else ""
    return (
        f"{reader(miss)} needs the number inside the tensor `{_tensor(miss)}`{value}, so Dynamo read it and made it a constant of the "
        "graph. In this call it holds another."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    tensor = _tensor(miss)
    return [
        source(
            f"An index: keep it a tensor with a dimension, `table[{tensor}.view(1)]` or `table.index_select(0, {tensor}.view(1))`, which "
            "gathers instead of reading (the result has that dimension too)."
        ),
        source(
            f"Or pass a Python int in place of `{tensor}`, with `dynamic=True`: an int may vary within one graph, the number inside "
            "a tensor used as an index may not."
        ),
    ]


RULE = GuardRule(
    id="tensor-read",
    order=250,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, table, n):
    return x + table[n]

for n in (2, 3, 4):
    f(torch.ones(3), torch.arange(5.0), torch.tensor(n))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, table, n):
    return x + table[n.view(1)]

for n in (2, 3, 4):
    f(torch.ones(3), torch.arange(5.0), torch.tensor(n))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, table, n):
    return x + table[n]

for n in (2, 3, 4):
    f(torch.ones(3), torch.arange(5.0), torch.tensor(n))
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, table, n):
    return x + table[n]

for n in (2, 3, 4):
    f(torch.ones(3), torch.arange(5.0), n)
""",
        ),
    ),
)
