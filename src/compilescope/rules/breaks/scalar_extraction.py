"""A Python number read out of a tensor: `.item()`, `float(t)`, `int(t)`, `.tolist()`."""

from __future__ import annotations

import ast

from compilescope.rules.breaks._trees import shown
from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example

_CONVERSIONS = ("float", "int", "bool", "complex")


def _applies(cause: Cause) -> bool:
    return cause.says("Tensor.item()", "_local_scalar_dense", "extract specialized integer")


def _why(cause: Cause) -> str:
    return (
        f"`{cause.text}` needs the actual number. Tracing has only shapes and dtypes, so the graph "
        "must end and run before Python gets the number."
    )


def _tensor_in(cause: Cause) -> str:
    """The tensor that the number is read from, as its author wrote it."""
    node = cause.spot.expression
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist"):
            return shown(node.func.value)
        if isinstance(node.func, ast.Name) and node.func.id in _CONVERSIONS and node.args:
            return shown(node.args[0])
    return ""


def _feeds_a_count(cause: Cause) -> bool:
    """Is it the bound of a range, a size, an index? Then a tensor will not do in its place."""
    outer = cause.spot.enclosing(ast.Call, ast.Subscript)
    if isinstance(outer, ast.Call):
        name = shown(outer.func)
        return name == "range" or name.endswith(
            ("zeros", "ones", "empty", "arange", "reshape", "view")
        )
    return isinstance(outer, ast.Subscript)


def _remedies(cause: Cause) -> list[Remedy]:
    tensor = _tensor_in(cause)
    if _feeds_a_count(cause) or cause.says("data-dependent expression"):
        return [
            source(
                f"Compute `{cause.text}` in the caller and pass the number to `{cause.function}`. "
                "Each new value may cost a compilation."
            )
        ]
    what = f"`{tensor}`" if tensor else "the tensor"
    return [
        source(
            f"Return {what} from `{cause.function}` and use its number in the caller: outside "
            f"compiled code, `{cause.text}` breaks no graph."
        )
    ]


RULE = BreakRule(
    id="scalar-extraction",
    category="scalar-extraction",
    order=40,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

def f(x):
    largest = x.abs().max().item()
    return x / largest

print(torch.compile(f, backend="eager")(torch.ones(3)))
""",
            good="""import torch

def f(x):
    return x.abs().max()

x = torch.ones(3)
print(x / torch.compile(f, backend="eager")(x).item())
""",
        ),
        Example(
            bad="""import torch

def f(x, sizes):
    first, second = (sizes + 1).tolist()
    return x * first + second

print(torch.compile(f, backend="eager")(torch.ones(3), torch.tensor([1, 2])))
""",
            good="""import torch

def f(sizes):
    return sizes + 1

first, second = torch.compile(f, backend="eager")(torch.tensor([1, 2])).tolist()
print(torch.ones(3) * first + second)
""",
        ),
        Example(
            bad="""import torch

def f(x):
    return x * int(x.sum())

print(torch.compile(f, backend="eager")(torch.ones(3)))
""",
            good="""import torch

def f(x):
    return x.sum()

x = torch.ones(3)
print(x * int(torch.compile(f, backend="eager")(x)))
""",
        ),
        Example(
            bad="""import torch

def f(x, n):
    for _ in range(int(n)):
        x = x * 2
    return x

print(torch.compile(f, backend="eager")(torch.ones(3), torch.tensor(2)))
""",
            good="""import torch

def f(x, n):
    for _ in range(n):
        x = x * 2
    return x

print(torch.compile(f, backend="eager")(torch.ones(3), int(torch.tensor(2))))
""",
        ),
    ),
)
