"""None at one call and a value at another."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import keep_both, one_graph_each
from compilescope.rules.guards._subjects import (
    called,
    cut,
    inside,
    member,
    of_a_module,
    reader,
    shown,
    value_kind,
    wrapper_note,
)


def _applies(miss: Miss) -> bool:
    expected, actual = value_kind(miss.cause.expected), value_kind(miss.cause.actual)
    return (expected == "none") != (actual == "none") and bool(
        miss.cause.expected and miss.cause.actual
    )


def _name(miss: Miss) -> str:
    return inside(miss.cause.subject, "type") or miss.cause.subject


def _why(miss: Miss) -> str:
    was, now = cut(miss.cause.expected), cut(miss.cause.actual)
    if inside(miss.cause.subject, "type"):
        was, now = (word if word in ("None", "NoneType") else f"a {word}" for word in (was, now))
    was, now = was.replace("NoneType", "None"), now.replace("NoneType", "None")
    return (
        f"`{shown(_name(miss))}` was {was} when `{called(miss)}` was compiled and is {now} now. {reader(miss)} reads it, and code "
        f"with and without it is traced into different graphs.{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    subject = _name(miss)
    name = shown(subject)
    if of_a_module(subject) and ("._parameters[" in subject or "._modules[" in subject):
        return one_graph_each(miss)
    if of_a_module(subject):
        return [
            source(
                f"Give `{name}` a tensor from the start (`self.register_buffer('{member(subject)}', torch.zeros(...))` in `__init__`) in place of None "
                f"until the first call fills it, with the shape that it will have."
            ),
            keep_both(miss, "of the two cases"),
        ]
    return [
        source(
            f"Always pass a `{name}`: where there is none, a neutral one (`torch.zeros(...)` for something that is added, ones for a mask or a "
            "factor). It costs the work with it; in return there is one graph."
        ),
        keep_both(miss, "of the two cases"),
    ]


RULE = GuardRule(
    id="none-or-value",
    order=290,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, bias=None):
    y = x * 2
    return y if bias is None else y + bias

f(torch.ones(3))
f(torch.ones(3), torch.ones(3))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, bias):
    return x * 2 + bias

f(torch.ones(3), torch.zeros(3))
f(torch.ones(3), torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, mask):
    return x * 2 if mask is None else x * mask

f(torch.ones(3), torch.ones(3))
f(torch.ones(3), None)
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, mask):
    return x * mask

f(torch.ones(3), torch.ones(3))
f(torch.ones(3), torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = None

    def forward(self, x):
        y = x * 2 if self.cache is None else x * 2 + self.cache
        self.cache = y
        return y

compiled = torch.compile(Net(), backend="eager")
compiled(torch.ones(3))
compiled(torch.ones(3))
""",
            good="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(3))

    def forward(self, x):
        y = x * 2 + self.cache
        self.cache = y
        return y

compiled = torch.compile(Net(), backend="eager")
compiled(torch.ones(3))
compiled(torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

class Net(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3, bias=bias)

    def forward(self, x):
        return self.inner(x)

for bias in (True, False):
    torch.compile(Net(bias), backend="eager")(torch.ones(3))
""",
            good="""import torch

class Net(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3, bias=bias)

    def forward(self, x):
        return self.inner(x)

both = torch.nn.Sequential(Net(True), Net(False))
torch.compile(both, backend="eager")(torch.ones(3))
""",
        ),
    ),
)
