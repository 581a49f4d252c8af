"""A global variable, or something reached through one, has changed."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave
from compilescope.rules.guards._subjects import both, called, cut, is_global, reader, shown


def _applies(miss: Miss) -> bool:
    return is_global(miss.cause.subject) and miss.cause.kind not in ("TENSOR_MATCH", "SHAPE")


def _why(miss: Miss) -> str:
    return (
        f"{reader(miss)} reads `{shown(miss.cause.subject)}`, a global or something reached "
        f"through one. It was {cut(miss.cause.expected)} when `{called(miss)}` was compiled and is "
        f"{cut(miss.cause.actual)} now. In the graph it is a constant."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name, function = shown(miss.cause.subject), called(miss)
    if both(miss, "int", "float"):
        first = source(
            f"Pass `{name}` to `{function}` as an argument, or, if it is only used in arithmetic, "
            "make it a tensor: a tensor's value is not part of the graph."
        )
    else:
        first = source(
            f"Set `{name}` before the first call of `{function}` and don't change it. If it must "
            "change, write a function for each value and choose in the caller."
        )
    return [first, leave(miss, f"value of `{name}`")]


RULE = GuardRule(
    id="global-change",
    order=400,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

COUNT = 3

@torch.compile(backend="eager")
def f(x):
    return x * COUNT

for _ in range(4):
    print(f(torch.ones(3)))
    COUNT += 1
""",
            good="""import torch

COUNT = 3

@torch.compile(backend="eager")
def f(x, count):
    return x * count

for _ in range(4):
    print(f(torch.ones(3), torch.tensor(COUNT)))
    COUNT += 1
""",
        ),
        Example(
            bad="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 3

    def forward(self, x):
        return x * self.step

net = Net()

@torch.compile(backend="eager")
def f(x):
    return net(x)

for _ in range(4):
    print(f(torch.ones(3)))
    net.step += 1
""",
            good="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = torch.tensor(3)

    def forward(self, x):
        return x * self.step

net = Net()

@torch.compile(backend="eager")
def f(x):
    return net(x)

for _ in range(4):
    print(f(torch.ones(3)))
    net.step += 1
""",
        ),
        Example(
            bad="""import torch

SCALE = 0.5

@torch.compile(backend="eager")
def f(x):
    return x * SCALE

for _ in range(3):
    print(f(torch.ones(3)))
    SCALE += 0.5
""",
            good="""import torch

SCALE = torch.tensor(0.5, dtype=torch.float64)

@torch.compile(backend="eager")
def f(x):
    return x * SCALE

for _ in range(3):
    print(f(torch.ones(3)))
    SCALE += 0.5
""",
        ),
        Example(
            bad="""import torch

DOUBLE = True

@torch.compile(backend="eager")
def f(x):
    return x * 2 if DOUBLE else x + 1

print(f(torch.ones(3)))
DOUBLE = False
print(f(torch.ones(3)))
""",
            good="""import torch

DOUBLE = True

@torch.compile(backend="eager")
def double(x):
    return x * 2

@torch.compile(backend="eager")
def raised(x):
    return x + 1

def f(x):
    return double(x) if DOUBLE else raised(x)

print(f(torch.ones(3)))
DOUBLE = False
print(f(torch.ones(3)))
""",
        ),
    ),
)
