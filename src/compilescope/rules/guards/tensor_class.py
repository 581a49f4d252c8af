"""A tensor of another class: a Parameter, a subclass."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called, inside, shown

_PLAIN = ("bool", "complex", "dict", "float", "int", "list", "str", "tuple")
"""Not a tensor at all."""


def _applies(miss: Miss) -> bool:
    tensors = miss.cause.kind == "TENSOR_MATCH" and miss.cause.actual not in _PLAIN
    return tensors and bool(inside(miss.cause.subject, "type"))


def _why(miss: Miss) -> str:
    name = shown(inside(miss.cause.subject, "type"))
    return (
        f"`{name}` was a {miss.cause.expected} when `{called(miss)}` was compiled and is a {miss.cause.actual} now. A class of tensor "
        "may change what operations do, so each has its own graph."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name = shown(inside(miss.cause.subject, "type"))
    classes = {miss.cause.expected, miss.cause.actual}
    if "Parameter" in classes:
        return [
            source(
                f"Where it is a Parameter, pass a view of it, `{name}.view_as({name})`: an ordinary tensor on the same memory, through which "
                "gradients reach the parameter. (`requires_grad` must agree too.)"
            ),
            judgement("Or leave the two compilations as they are: there will be no third."),
        ]
    return [
        source(
            f"Pass one class of tensor: `{name}.as_subclass(torch.Tensor)` gives a plain one on the same memory. What the subclass adds to "
            "operations is then gone inside the function."
        ),
        judgement(
            f"Or leave it: one compilation for each class that occurs, {miss.cause.actual} and {miss.cause.expected} so far."
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

f(torch.ones(3, requires_grad=True))
f(torch.nn.Parameter(torch.ones(3)))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

f(torch.ones(3, requires_grad=True))
parameter = torch.nn.Parameter(torch.ones(3))
f(parameter.view_as(parameter))
""",
        ),
        Example(
            bad="""import torch

class Tagged(torch.Tensor):
    pass

@torch.compile(backend="eager")
def f(x):
    return x * 2

f(torch.ones(3))
f(torch.ones(3).as_subclass(Tagged))
""",
            good="""import torch

class Tagged(torch.Tensor):
    pass

@torch.compile(backend="eager")
def f(x):
    return x * 2

f(torch.ones(3))
f(torch.ones(3).as_subclass(Tagged).as_subclass(torch.Tensor))
""",
        ),
    ),
)
