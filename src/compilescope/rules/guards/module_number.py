"""An int on a module, such as a step counter."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, config, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import (
    make_variable,
    one_graph_each,
    where_the_number_is_needed,
)
from compilescope.rules.guards._subjects import (
    both,
    called,
    member,
    of_a_module,
    reader,
    shown,
    wrapper_note,
)


def _applies(miss: Miss) -> bool:
    return of_a_module(miss.cause.subject) and both(miss, "int") and miss.cause.kind != "SHAPE"


def _why(miss: Miss) -> str:
    return (
        f"`{shown(miss.cause.subject)}` was {miss.cause.expected} when `{called(miss)}` was compiled and is {miss.cause.actual} now; {reader(miss)} reads it. "
        "Dynamo keeps an int on an nn.Module as a constant, with `dynamic=True` too: a counter compiles again at each step until the limit."
        f"{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name = member(miss.cause.subject)
    needed = where_the_number_is_needed(miss)
    if needed:
        return [*needed, *one_graph_each(miss)]
    return [
        source(
            f"If it changes from call to call: keep it in a tensor, `self.register_buffer('{name}', torch.tensor({miss.cause.expected}))`, and change that in place. "
            "Its value is not part of the graph; code that needs the number itself (a `range`, an `if`) then breaks the graph. A buffer is saved with the state "
            "dict unless `persistent=False`."
        ),
        config(
            "`torch._dynamo.config.allow_unspec_int_on_nn_module = True` lets ints on modules vary, from the first call with `dynamic=True`, after one "
            "recompile without. It holds for all modules of the program, except those that are reached through a global."
        ),
        *make_variable(miss.cause.subject),
        *one_graph_each(miss),
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
    compiled(torch.ones(3))
""",
            good="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("step", torch.tensor(3))

    def forward(self, x):
        self.step += 1
        return x * self.step

compiled = torch.compile(Net(), backend="eager")
for _ in range(4):
    compiled(torch.ones(3))
""",
            configured="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 3

    def forward(self, x):
        self.step += 1
        return x * self.step

with torch._dynamo.config.patch(allow_unspec_int_on_nn_module=True):
    compiled = torch.compile(Net(), backend="eager", dynamic=True)
    for _ in range(4):
        compiled(torch.ones(3))
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
            configured="""import torch
import torch.compiler.config

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
name = "L['self']._modules['inner']._modules['0'].step"
with torch.compiler.config.patch(dynamic_sources=name):
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
    torch.compile(Power(exponent), backend="eager")(torch.ones(3))
""",
            good="""import torch

class Power(torch.nn.Module):
    def __init__(self, exponent):
        super().__init__()
        self.exponent = exponent

    def forward(self, x):
        return x**self.exponent

both = torch.nn.Sequential(Power(2), Power(3))
torch.compile(both, backend="eager")(torch.ones(3))
""",
        ),
    ),
)
