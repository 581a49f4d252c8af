"""Tensors that change nothing where the code would use them: ones for a factor, a mask of False."""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_FALSE, _TRUE = "a mask that is False everywhere", "a mask that is True everywhere"
_ONES, _ZEROS = "a tensor of ones", "a tensor of zeros"
_ADDED = "a tensor of -0.0 (0.0 would turn -0.0 into 0.0)"
_SHAPED = ("unsqueeze", "view", "reshape", "expand", "expand_as", "to", "transpose", "flatten")
"""Methods that change the form of a tensor, and no number in it."""


def neutral_for(module: SourceModule, function: cst.FunctionDef, name: str) -> str:
    """The tensor, in words, that would do nothing where the function tests whether `name` is None
    and then computes with it; empty where its code does not tell, or uses differ."""
    found: set[str] = set()
    for use in module.walk(function.body):
        if isinstance(use, cst.Name) and use.value == name and not _is_test(module, use):
            found.add(_neutral(module, use) if _is_guarded(module, use, name) else "")
    return found.pop() if len(found) == 1 else ""


def _is_test(module: SourceModule, use: cst.Name) -> bool:
    """`mask is None`, `mask is not None`; or the name of an attribute or an argument."""
    above = module.parent(use)
    if isinstance(above, cst.Comparison) and above.left is use:
        return module.code(above).endswith((" is None", " is not None"))
    if isinstance(above, cst.Attribute):
        return above.attr is use
    return isinstance(above, cst.Arg) and above.keyword is use


def _is_guarded(module: SourceModule, use: cst.Name, name: str) -> bool:
    """Does it run only where the name is not None, and nothing else where it is None? A value that
    is picked must be what it would be then."""
    current: cst.CSTNode = use
    for above in module.ancestors(use):
        if (
            isinstance(above, (cst.If, cst.IfExp))
            and above.body is current
            and module.code(above.test) == f"{name} is not None"
        ):
            if isinstance(above, cst.If):
                return above.orelse is None and _changes_itself(module, use)
            return module.code(above.orelse) in _operands(module, above.body)
        current = above
    return False


def _changes_itself(module: SourceModule, use: cst.Name) -> bool:
    """`x = x * mask`, `x *= mask`: without it, `x` is what it was."""
    statement = next(
        (each for each in module.ancestors(use) if isinstance(each, (cst.Assign, cst.AugAssign))),
        None,
    )
    if isinstance(statement, cst.AugAssign):
        return True
    if statement is None or len(statement.targets) != 1:
        return False
    return module.code(statement.targets[0].target) in _operands(module, statement.value)


def _operands(module: SourceModule, value: cst.BaseExpression) -> Iterator[str]:
    """What the last operation of an expression is of, as code."""
    if isinstance(value, cst.BinaryOperation):
        yield module.code(value.left)
        if not isinstance(value.operator, cst.Subtract):
            yield module.code(value.right)
    elif isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        yield module.code(value.func.value)


def _neutral(module: SourceModule, use: cst.BaseExpression) -> str:
    """What changes nothing in the operation that the name goes into; empty for others."""
    above, turned = module.parent(use), False
    while True:
        if isinstance(above, cst.Attribute) and above.attr.value in _SHAPED:
            use = cst.ensure_type(module.parent(above), cst.Call)
        elif isinstance(above, cst.Subscript) and above.value is use:
            use = above
        elif isinstance(above, cst.UnaryOperation) and isinstance(above.operator, cst.BitInvert):
            use, turned = above, not turned
        elif isinstance(above, cst.Comparison) and module.code(above).endswith("== 0"):
            return _ONES if _is_filled(module, above) else ""
        else:
            break
        above = module.parent(use)
    if _is_filled(module, use):
        return _TRUE if turned else _FALSE
    if turned or not isinstance(above, (cst.BinaryOperation, cst.AugAssign)):
        return ""
    return _of_operator(above, use)


def _is_filled(module: SourceModule, mask: cst.BaseExpression) -> bool:
    """Is it the mask of a `masked_fill`?"""
    argument = module.parent(mask)
    call = module.parent(argument) if isinstance(argument, cst.Arg) else None
    func = call.func if isinstance(call, cst.Call) else None
    filled = isinstance(func, cst.Attribute) and func.attr.value in ("masked_fill", "masked_fill_")
    return filled and isinstance(call, cst.Call) and call.args[0] is argument


def _of_operator(above: cst.BinaryOperation | cst.AugAssign, use: cst.BaseExpression) -> str:
    right = isinstance(above, cst.AugAssign) or above.right is use
    match above.operator:
        case cst.Multiply() | cst.MultiplyAssign():
            return _ONES
        case cst.Add() | cst.AddAssign():
            return _ADDED
        case cst.Subtract() | cst.SubtractAssign():
            return _ZEROS if right else ""
        case cst.Divide() | cst.DivideAssign():
            return _ONES if right else ""
    return ""
