"""A Python number read out of a tensor: `.item()`, `float(t)`, `int(t)`, `.tolist()`."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.breaks._trees import shown
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule

_CONVERSIONS = ("float", "int", "bool", "complex")


def _applies(case: BreakCase) -> bool:
    return case.says("Tensor.item()", "_local_scalar_dense", "extract specialized integer")


def _why(case: BreakCase) -> str:
    return (
        f"`{case.text}` needs the actual number. Tracing has only shapes and dtypes, so the graph "
        "must end and run before Python gets the number."
    )


def _tensor_in(case: BreakCase) -> str:
    """The tensor that the number is read from, as its author wrote it."""
    node = case.spot.expression
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist"):
            return shown(node.func.value)
        if isinstance(node.func, ast.Name) and node.func.id in _CONVERSIONS and node.args:
            return shown(node.args[0])
    return ""


def _feeds_a_count(case: BreakCase) -> bool:
    """Is it the bound of a range, a size, an index? Then a tensor will not do in its place."""
    outer = case.spot.enclosing(ast.Call, ast.Subscript)
    if isinstance(outer, ast.Call):
        name = shown(outer.func)
        return name == "range" or name.endswith(
            ("zeros", "ones", "empty", "arange", "reshape", "view")
        )
    return isinstance(outer, ast.Subscript)


def _remedies(case: BreakCase) -> list[Remedy]:
    tensor = _tensor_in(case)
    if _feeds_a_count(case) or case.says("data-dependent expression"):
        return [
            source(
                f"Compute `{case.text}` in the caller and pass the number to `{case.function}`. "
                "Each new value may cost a compilation."
            )
        ]
    what = f"`{tensor}`" if tensor else "the tensor"
    return [
        source(
            f"Return {what} from `{case.function}` and use its number in the caller: outside "
            f"compiled code, `{case.text}` breaks no graph."
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
