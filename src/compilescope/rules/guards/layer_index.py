"""Layers that know their own index share one compiled function."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave, one_module
from compilescope.rules.guards._subjects import both, called, line_of, member, shown, uses

_INDEX = re.compile(
    r"^(?:(?:layer|block|stage|expert|depth|head|group)_?)?(?:idx|index|id|num|number|no)$|^(?:layer|block|stage)$"
)


def _applies(miss: Miss) -> bool:
    subject = miss.cause.subject
    return (
        "." in subject
        and both(miss, "int")
        and _INDEX.match(member(subject)) is not None
        and miss.cause.kind != "SHAPE"
    )


def _why(miss: Miss) -> str:
    return (
        f"`{called(miss)}` was compiled for a layer with `{shown(miss.cause.subject)}` = "
        f"{miss.cause.expected}; this one has {miss.cause.actual}. All layers of a class share the "
        f"code of `{called(miss)}`, and the number is a constant in each graph: one compilation "
        "per layer, up to the recompile limit."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name = member(miss.cause.subject)
    if "index" not in uses(miss, name):
        return [one_module(miss), leave(miss, f"`{name}`")]
    return [
        source(
            f"In the caller, select what `{line_of(miss)}` picks by `{name}`, and pass only that: "
            "one graph then serves all layers."
        ),
        one_module(miss),
    ]


RULE = GuardRule(
    id="layer-index",
    order=390,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

class Layer(torch.nn.Module):
    def __init__(self, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx

    def forward(self, x, cache):
        return x + cache[self.layer_idx]

cache = [torch.ones(3) for _ in range(3)]
for index in range(3):
    print(torch.compile(Layer(index), backend="eager")(torch.ones(3), cache))
""",
            good="""import torch

class Layer(torch.nn.Module):
    def __init__(self, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx

    def forward(self, x, past):
        return x + past

cache = [torch.ones(3) for _ in range(3)]
for index in range(3):
    layer = Layer(index)
    print(torch.compile(layer, backend="eager")(torch.ones(3), cache[layer.layer_idx]))
""",
        ),
        Example(
            bad="""import torch

class Layer(torch.nn.Module):
    def __init__(self, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx

    def forward(self, x):
        return x * (self.layer_idx + 1)

for index in range(3):
    print(torch.compile(Layer(index), backend="eager")(torch.ones(3)))
""",
            good="""import torch

class Layer(torch.nn.Module):
    def __init__(self, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx

    def forward(self, x):
        return x * (self.layer_idx + 1)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(index) for index in range(3)])

    def forward(self, x):
        return [layer(x) for layer in self.layers]

for result in torch.compile(Net(), backend="eager")(torch.ones(3)):
    print(result)
""",
        ),
    ),
)
