"""The value of a 0-dim tensor is read and kept as a constant."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave
from compilescope.rules.guards._subjects import called, reader, shown

_READ = re.compile(r"(?P<tensor>[^\s()]+)\.item\(\)(?: == (?P<value>\S+))?")


def _applies(miss: Miss) -> bool:
    return miss.cause.kind == "SHAPE" and _READ.search(miss.cause.guard) is not None


def _tensor(miss: Miss) -> str:
    match = _READ.search(miss.cause.guard)
    return shown(match["tensor"]) if match else shown(miss.cause.subject)


def _why(miss: Miss) -> str:
    match = _READ.search(miss.cause.guard)
    value = f" ({match['value']} at compilation)" if match and match["value"] else ""
    return (
        f"{reader(miss)} needs the number in the tensor `{_tensor(miss)}`{value}, so Dynamo read "
        "it and made it a constant in the graph. In this call, the tensor holds another number."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    tensor = _tensor(miss)
    return [
        source(
            f"Do what needs the number in `{tensor}` (such as indexing) in the caller, and pass "
            f"the resulting tensor to `{called(miss)}`."
        ),
        leave(miss, f"number in `{tensor}`"),
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
    print(f(torch.ones(3), torch.arange(5.0), torch.tensor(n)))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, entry):
    return x + entry

for n in (2, 3, 4):
    print(f(torch.ones(3), torch.arange(5.0)[torch.tensor(n)]))
""",
        ),
    ),
)
