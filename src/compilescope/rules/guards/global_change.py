"""A global variable, or something reached through one, has another value."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import keep_both, make_variable, where_the_number_is_needed
from compilescope.rules.guards._subjects import both, called, cut, is_global, reader, shown


def _applies(miss: Miss) -> bool:
    return is_global(miss.cause.subject) and miss.cause.kind not in ("TENSOR_MATCH", "SHAPE")


def _why(miss: Miss) -> str:
    return (
        f"{reader(miss)} reads `{shown(miss.cause.subject)}`, a global or something reached through one. It was {cut(miss.cause.expected)} when "
        f"`{called(miss)}` was compiled and is {cut(miss.cause.actual)} now; in the graph it is a constant."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name, function = shown(miss.cause.subject), called(miss)
    if both(miss, "int"):
        needed = where_the_number_is_needed(miss)
        if needed:
            return needed
        return [
            source(
                f"Pass it to `{function}` as an argument: an int argument varies within one graph (with `dynamic=True` from the first call), an int behind "
                f"a global does not. Or make `{name}` a tensor, where it is only computed with. "
                "(`allow_unspec_int_on_nn_module` does not reach an int on a module behind a global.)"
            ),
            *make_variable(miss.cause.subject),
        ]
    if both(miss, "float"):
        return [
            source(
                f"`torch.compile(..., dynamic=True)` lets `{name}` vary from the first call; so does a tensor in its place. Without either, Dynamo "
                "compiles a second time and then lets it vary."
            )
        ]
    return [
        source(
            f"Set `{name}` before the first call of `{function}` and leave it. Where it must change, make it a tensor and choose with "
            f"`torch.where` (both sides are computed), or compile a function for each value."
        ),
        keep_both(miss, f"value of `{name}`"),
    ]


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
    f(torch.ones(3))
    COUNT += 1
""",
            good="""import torch

COUNT = 3

@torch.compile(backend="eager", dynamic=True)
def f(x, count):
    return x * count

for _ in range(4):
    f(torch.ones(3), COUNT)
    COUNT += 1
""",
            configured="""import torch
import torch.compiler.config

COUNT = 3

@torch.compile(backend="eager")
def f(x):
    return x * COUNT

with torch.compiler.config.patch(dynamic_sources="G['COUNT']"):
    for _ in range(4):
        f(torch.ones(3))
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
    f(torch.ones(3))
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
    f(torch.ones(3))
    net.step += 1
""",
            configured="""import torch
import torch.compiler.config

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

with torch.compiler.config.patch(dynamic_sources="G['net'].step"):
    for _ in range(4):
        f(torch.ones(3))
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
    f(torch.ones(3))
    SCALE += 0.5
""",
            good="""import torch

SCALE = 0.5

@torch.compile(backend="eager", dynamic=True)
def f(x):
    return x * SCALE

for _ in range(3):
    f(torch.ones(3))
    SCALE += 0.5
""",
        ),
        Example(
            bad="""import torch

DOUBLE = True

@torch.compile(backend="eager")
def f(x):
    return x * 2 if DOUBLE else x + 1

f(torch.ones(3))
DOUBLE = False
f(torch.ones(3))
""",
            good="""import torch

DOUBLE = torch.tensor(True)

@torch.compile(backend="eager")
def f(x):
    return torch.where(DOUBLE, x * 2, x + 1)

f(torch.ones(3))
DOUBLE = torch.tensor(False)
f(torch.ones(3))
""",
        ),
    ),
)
