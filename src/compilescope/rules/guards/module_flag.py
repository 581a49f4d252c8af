"""A flag or string on a module differs between calls or instances."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, judgement
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import one_module
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
        f"`{shown(miss.cause.subject)}` was {cut(miss.cause.expected)} when `{called(miss)}` was "
        f"compiled and is {cut(miss.cause.actual)} now: it was changed on the module, or this is "
        f"another instance of the class. {reader(miss)} reads it, and each value has its own "
        f"graph.{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name = shown(miss.cause.subject)
    return [
        one_module(miss),
        judgement(
            f"If it changes between calls, set `{name}` before the first call and don't change it, "
            "or accept one compilation for each value."
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
    print(torch.compile(Block(flag), backend="eager")(torch.ones(3)))
""",
            good="""import torch

class Block(torch.nn.Module):
    def __init__(self, has_bias):
        super().__init__()
        self.has_bias = has_bias

    def forward(self, x):
        return x + 1 if self.has_bias else x * 2

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

both = All([Block(True), Block(False)])
for result in torch.compile(both, backend="eager")(torch.ones(3)):
    print(result)
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
    print(torch.compile(Block(kind), backend="eager")(torch.ones(3)))
""",
            good="""import torch

class Block(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        return x.relu() if self.kind == "relu" else x.tanh()

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

both = All([Block("relu"), Block("tanh")])
for result in torch.compile(both, backend="eager")(torch.ones(3)):
    print(result)
""",
        ),
    ),
)
