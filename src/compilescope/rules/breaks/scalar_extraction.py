"""A Python number read out of a tensor: `.item()`, `float(t)`, `int(t)`, `.tolist()`."""

from __future__ import annotations

import ast

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.breaks._trees import shown
from compilescope.rules.causes.rule import BreakRule, Cause

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
)
