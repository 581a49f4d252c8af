"""One printed expression: which operation it is, and with what it is called."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple

from compilescope.patterns import late

_CALL = late(r"([A-Za-z_][\w.]*)\((.*)\)", re.S)
_ITEM = late(r"(\w+)\[(.*)\]", re.S)
_ATTRIBUTE = late(r"(\w+)\.(\w+)")
_BINARY = late(
    r"([\w.+-]+) (\*\*|//|<<|>>|<=|>=|==|!=|[-+*/%@&|^<>])(=?) ([\w.+-]+(?:\(.*\))?)", re.S
)
_UNARY = late(r"([-+~]|not )(\w+)")
_OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod",
    "**": "pow", "@": "matmul", "&": "and_", "|": "or_", "^": "xor", "<<": "lshift",
    ">>": "rshift", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
}  # fmt: skip
_INPLACE = {"and_": "iand", "or_": "ior"}
_SIGNS = {"-": "neg", "+": "pos", "~": "invert", "not ": "not_"}


class PrintedCall(NamedTuple):
    """An operation and its arguments as text."""

    op: str
    target: str
    arguments: str


def read_call(expression: str, names: Container[str]) -> PrintedCall:
    """`names` are the values that exist so far: what begins with one is a method of it."""
    call = _CALL.fullmatch(expression)
    if call is not None:
        return _named_call(call[1], call[2], names)
    item = _ITEM.fullmatch(expression)
    if item is not None:
        return PrintedCall("call_function", "_operator.getitem", f"{item[1]}, {item[2]}")
    if expression.startswith("self."):
        return PrintedCall("get_attr", expression[len("self.") :], "")
    binary = _BINARY.fullmatch(expression)
    if binary is not None:
        left, sign, inplace, right = binary.groups()
        name = _OPERATORS[sign]
        if inplace:
            name = _INPLACE.get(name, f"i{name}")
        return PrintedCall("call_function", f"_operator.{name}", f"{left}, {right}")
    unary = _UNARY.fullmatch(expression)
    if unary is not None:
        return PrintedCall("call_function", f"_operator.{_SIGNS[unary[1]]}", unary[2])
    attribute = _ATTRIBUTE.fullmatch(expression)
    if attribute is not None:
        return PrintedCall("call_function", "builtins.getattr", f"{attribute[1]}, {attribute[2]!r}")
    if " = " in expression:
        return PrintedCall("call_function", "_operator.setitem", expression.replace(" = ", ", ", 1))
    return PrintedCall("call_function", "?", expression)


def _named_call(name: str, arguments: str, names: Container[str]) -> PrintedCall:
    head, _, rest = name.partition(".")
    if head == "self":
        return PrintedCall("call_module", rest, arguments)
    if rest and head in names:
        return PrintedCall("call_method", rest, f"{head}, {arguments}" if arguments else head)
    return PrintedCall("call_function", name.removeprefix("torch.ops."), arguments)
