"""Numbers read out of tensors that stay in the graph as symbols: a flag."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import Patch, Refused
from compilescope.fixes.source.deciding import check_no_decision
from compilescope.fixes.source.extraction import extraction_of
from compilescope.fixes.source.flags import with_flag
from compilescope.fixes.source.scalars import Divided, Uses
from compilescope.fixes.subject import Subject

# torch 2.13: Inductor's code gives inf where Python's division would raise.
_DIVIDED = "If the number is zero, dividing by it may give inf instead of an exception."


def _propose(subject: Subject) -> Patch:
    check_no_decision(subject)
    return with_flag(subject, "capture_scalar_outputs", True, states=_states(subject))


def _states(subject: Subject) -> str:
    try:
        Uses(subject).follow(extraction_of(subject).node)
    except Divided:
        return _DIVIDED
    except Refused:
        pass
    return ""


FIX = Fix(
    id="capture-scalars",
    title="capture the number in the graph (capture_scalar_outputs)",
    rules=frozenset({"scalar-extraction", "GB0124"}),
    order=120,
    kind="config",
    why="With `capture_scalar_outputs`, Dynamo keeps the number as a symbol. torch 2.13 "
    "accepts it as a size, an index, a slice and in arithmetic without `torch._check`.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


def f(x, n):
    return x[: n.item()] * 2


g = torch.compile(f, backend="eager")
g(torch.ones(3), torch.tensor(2))
""",
            good="""import torch


def f(x, n):
    return x[: n.item()] * 2


g = torch._dynamo.config.patch(capture_scalar_outputs=True)(torch.compile(f, backend="eager"))
g(torch.ones(3), torch.tensor(2))
""",
        ),
        FixExample(
            bad="""import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x, lengths):
        longest = int(lengths.max())
        return x[:, :longest].sum(1)


net = torch.compile(Net(), backend="eager")
net(torch.ones(2, 5), torch.tensor([3, 4]))
""",
            good="""import torch
from torch import nn
torch._dynamo.config.capture_scalar_outputs = True


class Net(nn.Module):
    def forward(self, x, lengths):
        longest = int(lengths.max())
        return x[:, :longest].sum(1)


net = torch.compile(Net(), backend="eager")
net(torch.ones(2, 5), torch.tensor([3, 4]))
""",
            note="A compiled module has attributes that a wrapper would hide.",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import random

import torch


def f(x):
    return torch.roll(x, random.randint(1, 2), dims=-1) * 2


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="whether a graph accepts the number",
        ),
        RefusalExample(
            program="""import torch


def f(x):
    n = x.sum().item()
    if n > 0:
        x = x + 1
    return x * n


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="control flow depends on the number in `n > 0`",
        ),
        RefusalExample(
            program="""import torch

torch._dynamo.config.capture_scalar_outputs = True


class Net(torch.nn.Module):
    def forward(self, x):
        return x * x.sum().item()


torch._dynamo.config.capture_scalar_outputs = False
torch.compile(Net(), backend="eager")(torch.ones(4))
""",
            because="already set",
        ),
    ),
)
