"""What can be said to be a tensor without running anything, and what facts say of it."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.source.bindings import parameters_of
from compilescope.fixes.subject import Subject

_NO_TENSOR = frozenset(
    {"item", "tolist", "numpy", "size", "dim", "numel", "ndimension", "stride", "split", "chunk"}
    | {"unbind", "is_floating_point", "is_complex", "is_contiguous", "type", "data_ptr", "keys"}
    | {"items", "values", "get", "copy", "format", "join", "index", "count", "pop", "parameters"}
)
"""Methods of tensors that give something else, and methods of containers and text."""
_MAKING = frozenset(
    f"torch.{name}"
    for name in (
        *("tensor", "zeros", "ones", "full", "empty", "rand", "randn", "randint", "arange", "eye"),
        *("zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "cat"),
        *(
            "stack",
            "where",
            "add",
            "sub",
            "mul",
            "div",
            "matmul",
            "exp",
            "log",
            "sqrt",
            "sin",
            "cos",
        ),
        *(
            "tanh",
            "sigmoid",
            "relu",
            "softmax",
            "sum",
            "mean",
            "abs",
            "clamp",
            "bmm",
            "mm",
            "einsum",
        ),
    )
)
_DEPTH = 6


def known_tensor(subject: Subject, value: cst.BaseExpression, depth: int = _DEPTH) -> bool:
    """True where facts or the source itself say so."""
    if depth == 0:
        return False
    if isinstance(value, cst.Name):
        seen = subject.is_tensor(value.value)
        return seen if seen is not None else _named_tensor(subject, value, depth)
    if isinstance(value, cst.Attribute):
        code = subject.module.code(value)
        if subject.is_tensor(code) is not None:
            return bool(subject.is_tensor(code))
        return value.attr.value in ("data", "T", "mT") and known_tensor(
            subject, value.value, depth - 1
        )
    if isinstance(value, cst.BinaryOperation):
        sides = (value.left, value.right)
        return any(known_tensor(subject, side, depth - 1) for side in sides)
    if isinstance(value, cst.UnaryOperation):
        return not isinstance(value.operator, cst.Not) and known_tensor(
            subject, value.expression, depth - 1
        )
    return isinstance(value, cst.Call) and _gives_tensor(subject, value, depth)


def _gives_tensor(subject: Subject, call: cst.Call, depth: int) -> bool:
    if subject.module.meaning(call.func) & _MAKING:
        return True
    method = call.func
    if isinstance(method, cst.Attribute) and method.attr.value not in _NO_TENSOR:
        return known_tensor(subject, method.value, depth - 1)
    return False


def _named_tensor(subject: Subject, name: cst.Name, depth: int) -> bool:
    """A variable of the function, all of whose values are known to be tensors; or a parameter
    that it does arithmetic of tensors with."""
    function = subject.function
    if name.value in parameters_of(function):
        return _is_used_as_tensor(subject, name.value)
    values = [
        each.value
        for each in subject.module.walk(function.body)
        if isinstance(each, cst.Assign)
        and any(
            isinstance(target.target, cst.Name) and target.target.value == name.value
            for target in each.targets
        )
    ]
    return bool(values) and all(known_tensor(subject, value, depth - 1) for value in values)


_ONLY_TENSORS = frozenset(
    {
        "detach",
        "clone",
        "sum",
        "mean",
        "view",
        "reshape",
        "sin",
        "cos",
        "exp",
        "log",
        "relu",
        "unsqueeze",
    }
    | {"requires_grad_", "backward", "matmul", "softmax", "permute", "contiguous", "add_", "mul_"}
)


def _is_used_as_tensor(subject: Subject, name: str) -> bool:
    """Is a method called on it that only tensors have?"""
    for node in subject.module.walk(subject.function.body):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            value = node.func.value
            if (
                isinstance(value, cst.Name)
                and value.value == name
                and node.func.attr.value in _ONLY_TENSORS
            ):
                return True
    return False
