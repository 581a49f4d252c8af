"""Another function is called in the same place."""

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
        return "it is now something else than a Python function (a builtin, a module, a partial)"
    return "it is now another"


def _why(miss: Miss) -> str:
    return (
        f"`{_name(miss)}`, called by {reader(miss)}, was another function when `{called(miss)}` was compiled; {_now(miss)}. Dynamo "
        "traces into what is called, so another function is another graph."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name, function = _name(miss), called(miss)
    if is_global(miss.cause.subject):
        return [
            source(
                f"Do not bind the global `{name}` anew between calls (a redefinition, a monkey patch, a notebook cell run again): give two "
                "functions two names, each with a compiled caller of its own."
            ),
            leave(miss, "of them"),
        ]
    return [
        source(
            f"Write out a caller for each function that is passed, and compile each, rather than `{function}` with `{name}` as an argument."
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
