"""Instances whose parameters differ in size share one compiled function."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave, one_module
from compilescope.rules.guards._subjects import called, shown, size_of, wrapper_note


def _applies(miss: Miss) -> bool:
    size = size_of(miss.cause.subject)
    stored = size is not None and ("._parameters[" in size[0] or "._buffers[" in size[0])
    return stored and miss.cause.kind == "TENSOR_MATCH"


def _why(miss: Miss) -> str:
    return (
        f"`{called(miss)}` was compiled for an instance with `{shown(miss.cause.subject)}` = "
        f"{miss.cause.expected}; this one has {miss.cause.actual}. Sizes of parameters and buffers "
        f"are constants even with `dynamic=True`.{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    return [one_module(miss), leave(miss, "size")]


RULE = GuardRule(
    id="parameter-size",
    order=200,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

class Layer(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * self.weight.sum()

for size in (3, 4, 5):
    print(torch.compile(Layer(size), backend="eager")(torch.ones(2)).tolist())
""",
            good="""import torch

class Layer(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * self.weight.sum()

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

layers = All([Layer(size) for size in (3, 4, 5)])
for result in torch.compile(layers, backend="eager")(torch.ones(2)):
    print(result.tolist())
""",
        ),
        Example(
            bad="""import torch

for size in (3, 4, 5):
    torch.compile(torch.nn.Linear(size, 2), backend="eager")(torch.ones(size))
""",
        ),
    ),
)
