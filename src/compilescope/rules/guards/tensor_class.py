"""A tensor of a different class: a Parameter, a subclass."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave
from compilescope.rules.guards._subjects import called, inside, shown

_PLAIN = ("bool", "complex", "dict", "float", "int", "list", "str", "tuple")
"""Not a tensor at all."""


def _applies(miss: Miss) -> bool:
    tensors = miss.cause.kind == "TENSOR_MATCH" and miss.cause.actual not in _PLAIN
    return tensors and bool(inside(miss.cause.subject, "type"))


def _why(miss: Miss) -> str:
    name = shown(inside(miss.cause.subject, "type"))
    return (
        f"`{name}` was a {miss.cause.expected} when `{called(miss)}` was compiled and is a "
        f"{miss.cause.actual} now. A tensor class can change what operations do, so each has its "
        "own graph."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name = shown(inside(miss.cause.subject, "type"))
    classes = {miss.cause.expected, miss.cause.actual}
    cases = leave(miss, "class")
    if "Parameter" in classes:
        return [
            source(
                f"If it is a Parameter, pass a view of it, `{name}.view_as({name})`: an ordinary "
                "tensor on the same memory, through which gradients reach the parameter."
            ),
            cases,
        ]
    return [
        cases,
        source(
            f"Or pass `{name}.as_subclass(torch.Tensor)`, a plain tensor on the same memory, if "
            f"`{called(miss)}` needs nothing that the subclass adds."
        ),
    ]


RULE = GuardRule(
    id="tensor-class",
    order=310,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(3, requires_grad=True)).tolist())
print(f(torch.nn.Parameter(torch.ones(3))).tolist())
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(3, requires_grad=True)).tolist())
parameter = torch.nn.Parameter(torch.ones(3))
print(f(parameter.view_as(parameter)).tolist())
""",
        ),
        Example(
            bad="""import torch

class Tagged(torch.Tensor):
    pass

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(3)).tolist())
print(f(torch.ones(3).as_subclass(Tagged)).tolist())
""",
            good="""import torch

class Tagged(torch.Tensor):
    pass

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(3)).tolist())
print(f(torch.ones(3).as_subclass(Tagged).as_subclass(torch.Tensor)).tolist())
""",
        ),
    ),
)
