"""A different module in the same place."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave, one_module
from compilescope.rules.guards._subjects import called, inside, member, shown, uses, wrapper_note

_MODULE = re.compile(r"^torch\.nn\.(?!parameter\.)|(?:^|\.)nn\.modules\.")


def _applies(miss: Miss) -> bool:
    inner = inside(miss.cause.subject, "type")
    if not inner or miss.cause.expected == miss.cause.actual:
        return False
    a_part = re.search(r"\._modules\['[^']*'\]$", inner) is not None
    return inner == "self" or a_part or _of_torch(miss) or "call" in uses(miss, member(inner))


def _of_torch(miss: Miss) -> bool:
    """Torch's own modules are compiled through one function of torch's, and share it."""
    classes = (miss.cause.expected, miss.cause.actual)
    return any(_MODULE.search(name) is not None for name in classes)


def _class(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _why(miss: Miss) -> str:
    if inside(miss.cause.subject, "type") == "self":
        return (
            f"`{called(miss)}` was compiled for a {_class(miss.cause.expected)} and is now called "
            f"for a {_class(miss.cause.actual)}, which inherits it from the same base class. They "
            "share its code, and so its compilations, but their other code may differ."
        )
    place = shown(inside(miss.cause.subject, "type"))
    return (
        f"`{place}` was of class {_class(miss.cause.expected)} when `{called(miss)}` was compiled "
        f"and is of class {_class(miss.cause.actual)} now. Its code is traced into the graph, so "
        f"each class needs its own graph. One compiled `{called(miss)}` serves callers that differ "
        f"in it.{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    inner = inside(miss.cause.subject, "type")
    if "._modules[" in inner or inner == "self" or _of_torch(miss):
        return [one_module(miss), leave(miss, "class")]
    return [
        source(
            f"Compile the callee rather than its caller: each `{shown(inner)}` once, and leave "
            f"`{called(miss)}` uncompiled."
        ),
        leave(miss, "class"),
    ]


RULE = GuardRule(
    id="module-class",
    order=300,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

class Block(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)

for inner in (torch.nn.ReLU(), torch.nn.Tanh()):
    print(torch.compile(Block(inner), backend="eager")(torch.ones(3)))
""",
            good="""import torch

class Block(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

both = All([Block(torch.nn.ReLU()), Block(torch.nn.Tanh())])
for result in torch.compile(both, backend="eager")(torch.ones(3)):
    print(result)
""",
        ),
        Example(
            bad="""import torch

class Base(torch.nn.Module):
    def forward(self, x):
        return self.act(x) * 2

class Relu(Base):
    def act(self, x):
        return x.relu()

class Tanh(Base):
    def act(self, x):
        return x.tanh()

for net in (Relu(), Tanh()):
    print(torch.compile(net, backend="eager")(torch.ones(3)))
""",
            good="""import torch

class Base(torch.nn.Module):
    def forward(self, x):
        return self.act(x) * 2

class Relu(Base):
    def act(self, x):
        return x.relu()

class Tanh(Base):
    def act(self, x):
        return x.tanh()

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

for result in torch.compile(All([Relu(), Tanh()]), backend="eager")(torch.ones(3)):
    print(result)
""",
        ),
        Example(
            bad="""import torch

class Relu(torch.nn.Module):
    def forward(self, x):
        return x.relu()

class Tanh(torch.nn.Module):
    def forward(self, x):
        return x.tanh()

@torch.compile(backend="eager")
def f(x, layer):
    return layer(x)

for layer in (Relu(), Tanh()):
    print(f(torch.ones(3), layer))
""",
            good="""import torch

class Relu(torch.nn.Module):
    def forward(self, x):
        return x.relu()

class Tanh(torch.nn.Module):
    def forward(self, x):
        return x.tanh()

def f(x, layer):
    return layer(x)

for layer in (Relu(), Tanh()):
    print(f(torch.ones(3), torch.compile(layer, backend="eager")))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, layer):
    return layer(x)

for layer in (torch.nn.ReLU(), torch.nn.Tanh()):
    print(f(torch.ones(3), layer))
""",
            good="""import torch

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

both = All([torch.nn.ReLU(), torch.nn.Tanh()])
for result in torch.compile(both, backend="eager")(torch.ones(3)):
    print(result)
""",
        ),
    ),
)
