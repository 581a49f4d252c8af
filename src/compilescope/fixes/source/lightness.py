"""Statements that are no work for a compiler: calls for an effect, names, attributes, constants."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.source.module import SourceModule

_PLAIN = (cst.Pass, cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal)
_VALUES = (
    cst.Name,
    cst.Integer,
    cst.Float,
    cst.SimpleString,
    cst.ConcatenatedString,
    cst.FormattedString,
)
_FREE_METHODS = frozenset({"item", "size", "dim", "numel", "requires_grad_", "tolist"})
"""Of tensors: what costs nothing, or is no graph's."""
_EFFECTS_WITH_BAR = frozenset({"requires_grad_", "clip_grad_norm_", "clip_grad_value_"})


def is_docstring(statement: cst.BaseStatement) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine) or not statement.body:
        return False
    only = statement.body[0]
    return isinstance(only, cst.Expr) and isinstance(
        only.value, (cst.SimpleString, cst.ConcatenatedString)
    )


def is_backward(module: SourceModule, statement: cst.BaseStatement) -> bool:
    """`loss.backward()`, which changes no value that a graph has computed."""
    calls = [each for each in module.walk(statement) if isinstance(each, cst.Call)]
    return (
        len(calls) == 1
        and isinstance(calls[0].func, cst.Attribute)
        and (calls[0].func.attr.value == "backward")
    )


def is_light(module: SourceModule, statement: cst.BaseStatement) -> bool:
    """Would nothing be lost if it ran outside of the graph?"""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    return all(_is_light_part(module, part) for part in statement.body)


def _is_light_part(module: SourceModule, part: cst.BaseSmallStatement) -> bool:
    if isinstance(part, _PLAIN):
        return True
    if isinstance(part, cst.Expr):
        called = isinstance(part.value, cst.Call) and not _is_in_place(part.value)
        return called or isinstance(part.value, _VALUES)
    if isinstance(part, cst.Return):
        return part.value is None or is_light_value(module, part.value)
    if isinstance(part, (cst.Assign, cst.AnnAssign)):
        return part.value is None or is_light_value(module, part.value)
    return False


def _is_in_place(call: cst.Call) -> bool:
    """`x.mul_(2)`, `torch.nn.init.zeros_(w)`: work on tensors."""
    func = call.func
    name = func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", "")
    return (
        isinstance(name, str)
        and name.endswith("_")
        and not name.endswith("__")
        and name not in _EFFECTS_WITH_BAR
    )


def is_light_value(module: SourceModule, value: cst.BaseExpression) -> bool:
    """Names, attributes, constants, and tuples and dicts of them."""
    if isinstance(value, _VALUES):
        return True
    if isinstance(value, cst.Attribute):
        return is_light_value(module, value.value)
    if isinstance(value, (cst.Tuple, cst.List)):
        return all(is_light_value(module, each.value) for each in value.elements)
    if isinstance(value, cst.Dict):
        return all(
            isinstance(each, cst.DictElement) and is_light_value(module, each.value)
            for each in value.elements
        )
    if isinstance(value, cst.Subscript):
        return is_light_value(module, value.value) and all(
            isinstance(part.slice, cst.Index) and is_light_value(module, part.slice.value)
            for part in value.slice
        )
    if isinstance(value, cst.Call):
        func = value.func
        return (
            isinstance(func, cst.Attribute)
            and func.attr.value in _FREE_METHODS
            and is_light_value(module, func.value)
            and all(is_light_value(module, arg.value) for arg in value.args)
        )
    return False
