"""A torch function mode is active in one call and not in another."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave
from compilescope.rules.guards._subjects import called

_STATES = ("torch_function", "torch_function_all_disabled")


def _applies(miss: Miss) -> bool:
    return miss.cause.kind == "TORCH_FUNCTION_MODE_STACK" or miss.cause.subject in _STATES


def _why(miss: Miss) -> str:
    if miss.cause.subject in _STATES:
        change = f"`{miss.cause.subject}` was {miss.cause.expected} at compilation and is {miss.cause.actual} now"
    else:
        change = (
            "the active modes (`TorchFunctionMode`; a default device is one too) differ from "
            "those at compilation"
        )
    return (
        f"Python code may handle torch calls inside `{called(miss)}`: {change}. Dynamo traces "
        "through such handlers, so each set of them has its own graph."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    return [
        source(
            f"Enter the mode around every call of `{called(miss)}`, or around none. Exit one meant "
            "only for eager code (a counter, a logger) before the call."
        ),
        leave(miss, "set of modes"),
    ]


RULE = GuardRule(
    id="torch-function-mode",
    order=80,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch
from torch.overrides import TorchFunctionMode

class Plain(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(3)))
with Plain():
    print(f(torch.ones(3)))
""",
            good="""import torch
from torch.overrides import TorchFunctionMode

class Plain(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

@torch.compile(backend="eager")
def f(x):
    return x * 2

with Plain():
    print(f(torch.ones(3)))
    print(f(torch.ones(3)))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(3)))
with torch._C.DisableTorchFunction():
    print(f(torch.ones(3)))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(3)))
print(f(torch.ones(3)))
""",
        ),
    ),
)
