"""A flag or a word on a module differs between calls or between instances."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import one_graph_each
from compilescope.rules.guards._subjects import (
    both,
    called,
    cut,
    of_a_module,
    reader,
    shown,
    wrapper_note,
)


def _applies(miss: Miss) -> bool:
    return (
        of_a_module(miss.cause.subject) and both(miss, "bool", "str") and miss.cause.kind != "SHAPE"
    )


def _why(miss: Miss) -> str:
    return (
        f"`{shown(miss.cause.subject)}` was {cut(miss.cause.expected)} when `{called(miss)}` was compiled and is {cut(miss.cause.actual)} now: it was changed "
        f"on the module, or this is another instance of the same class. {reader(miss)} reads it, and each value has its own graph."
        f"{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name = shown(miss.cause.subject)
    return [
        *one_graph_each(miss),
        source(
            f"If it is changed between calls: set `{name}` before the first call and leave it, or make it a tensor and choose with `torch.where` (both "
            "sides are computed)."
        ),
    ]


RULE = GuardRule(
    id="module-flag",
    order=430,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

class Block(torch.nn.Module):
    def __init__(self, has_bias):
        super().__init__()
        self.has_bias = has_bias

    def forward(self, x):
        return x + 1 if self.has_bias else x * 2

for flag in (True, False):
    torch.compile(Block(flag), backend="eager")(torch.ones(3))
""",
            good="""import torch

class Block(torch.nn.Module):
    def __init__(self, has_bias):
        super().__init__()
        self.has_bias = has_bias

    def forward(self, x):
        return x + 1 if self.has_bias else x * 2

blocks = torch.nn.Sequential(Block(True), Block(False))
torch.compile(blocks, backend="eager")(torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.double = True

    def forward(self, x):
        return x * 2 if self.double else x + 1

net = Net()
compiled = torch.compile(net, backend="eager")
compiled(torch.ones(3))
net.double = False
compiled(torch.ones(3))
""",
            good="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.double = torch.tensor(True)

    def forward(self, x):
        return torch.where(self.double, x * 2, x + 1)

net = Net()
compiled = torch.compile(net, backend="eager")
compiled(torch.ones(3))
net.double = torch.tensor(False)
compiled(torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

class Block(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        return x.relu() if self.kind == "relu" else x.tanh()

for kind in ("relu", "tanh"):
    torch.compile(Block(kind), backend="eager")(torch.ones(3))
""",
            good="""import torch

class Block(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        return x.relu() if self.kind == "relu" else x.tanh()

for kind in ("relu", "tanh"):
    torch.compile(Block(kind), backend="eager", isolate_recompiles=True)(torch.ones(3))
""",
        ),
    ),
)
