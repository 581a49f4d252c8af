"""None in one call and a value in another."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave, one_module
from compilescope.rules.guards._subjects import (
    called,
    cut,
    inside,
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
        f"`{shown(_name(miss))}` was {was} when `{called(miss)}` was compiled and is {now} now. "
        f"{reader(miss)} reads it, and code with and without it traces into different "
        f"graphs.{wrapper_note(miss)}"
    )


def _is_tensor(miss: Miss) -> bool:
    """Numbers, texts and the like have no neutral value to pass."""
    kinds = {value_kind(miss.cause.expected), value_kind(miss.cause.actual)}
    return not kinds & {"bool", "int", "float", "str"} and not {
        miss.cause.expected,
        miss.cause.actual,
    } & {"bool", "int", "float", "str"}


def _remedies(miss: Miss) -> list[Remedy]:
    subject = _name(miss)
    name = shown(subject)
    cases = leave(miss, "of the two cases")
    if of_a_module(subject) and ("._parameters[" in subject or "._modules[" in subject):
        return [one_module(miss), cases]
    if of_a_module(subject):
        return [
            source(
                f"Initialize `{name}` with a tensor of its final shape instead of None, if one "
                "exists that changes nothing (such as zeros for something that is added)."
            ),
            cases,
        ]
    if not _is_tensor(miss):
        return [cases]
    return [
        source(
            f"Always pass `{name}`, if one exists that changes nothing: zeros for something that "
            "is added, ones for a factor."
        ),
        cases,
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

print(f(torch.ones(3)))
print(f(torch.ones(3), torch.ones(3)))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, bias=None):
    y = x * 2
    return y if bias is None else y + bias

print(f(torch.ones(3), torch.zeros(3)))
print(f(torch.ones(3), torch.ones(3)))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, mask):
    return x if mask is None else x * mask

print(f(torch.ones(3), torch.zeros(3)))
print(f(torch.ones(3), None))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, mask):
    return x if mask is None else x * mask

print(f(torch.ones(3), torch.zeros(3)))
print(f(torch.ones(3), torch.ones(3)))
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
print(compiled(torch.ones(3)))
print(compiled(torch.ones(3)))
""",
            good="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = torch.zeros(3)

    def forward(self, x):
        y = x * 2 + self.cache
        self.cache = y
        return y

compiled = torch.compile(Net(), backend="eager")
print(compiled(torch.ones(3)))
print(compiled(torch.ones(3)))
""",
        ),
        Example(
            bad="""import torch

class Net(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3, bias=bias)
        torch.nn.init.ones_(self.inner.weight)
        if bias:
            torch.nn.init.ones_(self.inner.bias)

    def forward(self, x):
        return self.inner(x)

for bias in (True, False):
    print(torch.compile(Net(bias), backend="eager")(torch.ones(3)).tolist())
""",
            good="""import torch

class Net(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3, bias=bias)
        torch.nn.init.ones_(self.inner.weight)
        if bias:
            torch.nn.init.ones_(self.inner.bias)

    def forward(self, x):
        return self.inner(x)

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

for result in torch.compile(All([Net(True), Net(False)]), backend="eager")(torch.ones(3)):
    print(result.tolist())
""",
        ),
    ),
)
