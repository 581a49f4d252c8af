"""An int on a module, such as a step counter."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave, one_module
from compilescope.rules.guards._subjects import (
    both,
    called,
    member,
    of_a_module,
    reader,
    shown,
    uses,
    wrapper_note,
)


def _applies(miss: Miss) -> bool:
    return of_a_module(miss.cause.subject) and both(miss, "int") and miss.cause.kind != "SHAPE"


def _why(miss: Miss) -> str:
    return (
        f"`{shown(miss.cause.subject)}` was {miss.cause.expected} when `{called(miss)}` was "
        f"compiled and is {miss.cause.actual} now; {reader(miss)} reads it. Dynamo treats an int "
        "on an nn.Module as a constant, even with `dynamic=True`: a counter recompiles at each "
        f"step until the limit.{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name = shown(miss.cause.subject)
    if uses(miss, member(miss.cause.subject)) & {"range", "index"}:
        return [one_module(miss), leave(miss, f"`{name}`")]
    return [
        source(
            f"If it changes between calls, keep `{name}` out of compiled code (count in the "
            "caller, for example), or in a tensor if it is only used in arithmetic."
        ),
        one_module(miss),
    ]


RULE = GuardRule(
    id="module-number",
    order=440,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 3

    def forward(self, x):
        self.step += 1
        return x * self.step

compiled = torch.compile(Net(), backend="eager")
for _ in range(4):
    print(compiled(torch.ones(3)))
""",
            good="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = torch.tensor(3)

    def forward(self, x):
        self.step += 1
        return x * self.step

compiled = torch.compile(Net(), backend="eager")
for _ in range(4):
    print(compiled(torch.ones(3)))
""",
        ),
        Example(
            bad="""import torch

class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 3

    def forward(self, x):
        return x * self.step

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.ModuleList([Inner()])

    def forward(self, x):
        return self.inner[0](x)

net = Net()
compiled = torch.compile(net, backend="eager")
for _ in range(4):
    compiled(torch.ones(3))
    net.inner[0].step += 1
""",
        ),
        Example(
            bad="""import torch

class Power(torch.nn.Module):
    def __init__(self, exponent):
        super().__init__()
        self.exponent = exponent

    def forward(self, x):
        return x**self.exponent

for exponent in (2, 3):
    print(torch.compile(Power(exponent), backend="eager")(torch.ones(3)))
""",
            good="""import torch

class Power(torch.nn.Module):
    def __init__(self, exponent):
        super().__init__()
        self.exponent = exponent

    def forward(self, x):
        return x**self.exponent

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

for result in torch.compile(All([Power(2), Power(3)]), backend="eager")(torch.ones(3)):
    print(result)
""",
        ),
    ),
)
