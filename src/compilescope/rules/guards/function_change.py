"""A different function is called in the same place."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave
from compilescope.rules.guards._subjects import called, is_global, reader, shown

_CODE = ".__code__"


def _applies(miss: Miss) -> bool:
    if miss.cause.subject.endswith((_CODE, ".__func__")):
        return True
    return miss.cause.expected == "the same object" and miss.cause.actual.startswith(
        ("<function ", "<code of ")
    )


def _name(miss: Miss) -> str:
    return shown(miss.cause.subject.removesuffix(_CODE).removesuffix(".__func__"))


def _now(miss: Miss) -> str:
    actual = miss.cause.actual
    for start in ("<code of ", "<function "):
        if actual.startswith(start):
            return f"it is now `{actual.removeprefix(start).removesuffix('>')}`"
    if miss.cause.kind == "ACCESSOR":
        return "it is now something other than a Python function (a builtin, a module, a partial)"
    return "it is now a different one"


def _why(miss: Miss) -> str:
    return (
        f"`{_name(miss)}`, called by {reader(miss)}, was a different function when "
        f"`{called(miss)}` was compiled; {_now(miss)}. Dynamo traces into called functions, so "
        "each function needs its own graph."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name, function = _name(miss), called(miss)
    if is_global(miss.cause.subject):
        return [
            source(
                f"Don't rebind the global `{name}` between calls (a redefinition, a monkey patch, "
                "a notebook cell run again): give the two functions two names, each with its own "
                "compiled caller."
            ),
            leave(miss, "of them"),
        ]
    return [
        source(
            "Write a separate caller for each function you pass, and compile each, rather than "
            f"`{function}` with `{name}` as an argument."
        ),
        leave(miss, "of them"),
    ]


RULE = GuardRule(
    id="function-change",
    order=330,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, g):
    return g(x)

print(f(torch.ones(3), lambda x: x + 1))
print(f(torch.ones(3), lambda x: x * 2))
""",
            good="""import torch

def one(x):
    return x + 1

def two(x):
    return x * 2

print(torch.compile(lambda x: one(x), backend="eager")(torch.ones(3)))
print(torch.compile(lambda x: two(x), backend="eager")(torch.ones(3)))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, g):
    return g(x)

print(f(torch.ones(3), lambda x: x + 1))
print(f(torch.ones(3), torch.relu))
""",
            good="""import torch

print(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3)))
print(torch.compile(lambda x: torch.relu(x), backend="eager")(torch.ones(3)))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, g):
    return g(x)

print(f(torch.ones(3), torch.relu))
print(f(torch.ones(3), torch.tanh))
""",
            good="""import torch

print(torch.compile(lambda x: torch.relu(x), backend="eager")(torch.ones(3)))
print(torch.compile(lambda x: torch.tanh(x), backend="eager")(torch.ones(3)))
""",
        ),
        Example(
            bad="""import torch

def g(x):
    return x + 1

@torch.compile(backend="eager")
def f(x):
    return g(x)

print(f(torch.ones(3)))

def g(x):
    return x * 2

print(f(torch.ones(3)))
""",
            good="""import torch

def g(x):
    return x + 1

def h(x):
    return x * 2

@torch.compile(backend="eager")
def f(x):
    return g(x)

@torch.compile(backend="eager")
def other(x):
    return h(x)

print(f(torch.ones(3)))
print(other(torch.ones(3)))
""",
        ),
    ),
)
