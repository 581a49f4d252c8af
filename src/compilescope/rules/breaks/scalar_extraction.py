"""A Python number read out of a tensor: `.item()`, `float(t)`, `int(t)`, `.tolist()`."""

from __future__ import annotations

import ast

from compilescope.rules.breaks._trees import shown
from compilescope.rules.causes.remedy import Remedy, config, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example

_CONVERSIONS = ("float", "int", "bool", "complex")


def _applies(cause: Cause) -> bool:
    return cause.says("Tensor.item()", "_local_scalar_dense", "extract specialized integer")


def _why(cause: Cause) -> str:
    return (
        f"`{cause.text}` asks for the number itself. Tracing has no numbers, only shapes and dtypes, so "
        "the graph must end, run, and hand the number to Python."
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


def _as_tensor(cause: Cause, tensor: str) -> str:
    """The tensor that has the value of the number."""
    node = cause.spot.expression
    assert isinstance(node, ast.Call)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "tolist":
        return f"({tensor}).unbind()"
    if isinstance(node.func, ast.Name) and node.func.id == "int":
        return f"({tensor}).trunc()"
    return tensor


def _remedies(cause: Cause) -> list[Remedy]:
    if cause.says("data-dependent expression"):
        return [
            source(
                f"`{cause.text}` needs a real number, and what it gets was read from a tensor. Pass it to "
                f"`{cause.function}` as a Python number."
            ),
            config(
                "`torch._dynamo.config.capture_scalar_outputs = False` again: a break takes the place of "
                "this error."
            ),
        ]
    tensor = _tensor_in(cause)
    remedies = []
    if tensor and not _feeds_a_count(cause):
        remedies.append(
            source(
                f"Stay with the tensor: use `{_as_tensor(cause, tensor)}` where `{cause.text}` stands. Arithmetic, "
                "comparisons and `torch.where` take a tensor of one element as they take a number."
            )
        )
    elif tensor:
        remedies.append(
            source(
                f"Pass the number in as a Python argument of `{cause.function}`, or compute `{cause.text}` "
                "before the compiled call; a size or a loop bound must be a number."
            )
        )
    remedies.append(
        config(
            "`torch._dynamo.config.capture_scalar_outputs = True` keeps the number in the graph as a symbol. "
            "Code that needs its value (a branch, a loop bound, a list index) then fails or recompiles "
            "instead, so try it before you trust it."
        )
    )
    return remedies


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

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch

def f(x):
    largest = x.abs().max()
    return x / largest

torch.compile(f, backend="eager")(torch.ones(3))
""",
            configured="""import torch

def f(x):
    largest = x.abs().max().item()
    return x / largest

with torch._dynamo.config.patch(capture_scalar_outputs=True):
    torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

def f(x, sizes):
    first, second = (sizes + 1).tolist()
    return x * first + second

torch.compile(f, backend="eager")(torch.ones(3), torch.tensor([1, 2]))
""",
            good="""import torch

def f(x, sizes):
    first, second = (sizes + 1).unbind()
    return x * first + second

torch.compile(f, backend="eager")(torch.ones(3), torch.tensor([1, 2]))
""",
        ),
        Example(
            bad="""import torch

def f(x):
    return x * int(x.sum())

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch

def f(x):
    return x * (x.sum()).trunc()

torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

def f(x, n):
    for _ in range(int(n)):
        x = x * 2
    return x

torch.compile(f, backend="eager")(torch.ones(3), torch.tensor(2))
""",
            good="""import torch

def f(x, n):
    for _ in range(n):
        x = x * 2
    return x

torch.compile(f, backend="eager")(torch.ones(3), int(torch.tensor(2)))
""",
        ),
    ),
)
