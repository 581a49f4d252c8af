"""The message of an exception, as text that is known before the numbers are."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from compilescope.fixes.patch import Refused
from compilescope.fixes.source.purity import short
from compilescope.fixes.source.values import facts_of, is_static
from compilescope.fixes.subject import Subject


@dataclass(frozen=True)
class Message:
    code: str
    """An expression without tensors."""
    left_out: tuple[str, ...] = ()
    """Expressions whose value the message had, and now has not."""


def read_message(subject: Subject, node: cst.BaseExpression | None, otherwise: str) -> Message:
    """Raises `Refused` where it cannot be told what the message would be."""
    module = subject.module
    if node is None:
        return Message(repr(otherwise))
    if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str):
        return Message(module.code(node))
    if isinstance(node, cst.ConcatenatedString):
        left = read_message(subject, node.left, "")
        right = read_message(subject, node.right, "")
        return Message(f"{left.code} {right.code}", (*left.left_out, *right.left_out))
    if isinstance(node, cst.FormattedString):
        return _formatted(subject, node)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        left = read_message(subject, node.left, "")
        right = read_message(subject, node.right, "")
        return Message(f"{left.code} + {right.code}", (*left.left_out, *right.left_out))
    if _is_made_of_static(subject, node):
        return Message(module.code(node))
    if isinstance(node, (cst.Name, cst.Attribute)):
        seen = facts_of(subject, node)
        if seen and all(fact.kind == "text" for fact in seen):
            return Message(module.code(node))
    raise Refused(f"the message `{short(module, node)}` is not known before the values are")


def _is_made_of_static(subject: Subject, node: cst.BaseExpression) -> bool:
    """`str(n)`, `"at %d" % n`, `"at {}".format(n)`."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo):
        right = node.right
        values = [e.value for e in right.elements] if isinstance(right, cst.Tuple) else [right]
        plain = isinstance(node.left, (cst.SimpleString, cst.ConcatenatedString))
    elif isinstance(node, cst.Call):
        values = [arg.value for arg in node.args]
        func = node.func
        method = isinstance(func, cst.Attribute) and func.attr.value == "format"
        held = func.value if isinstance(func, cst.Attribute) else None
        plain = (method and isinstance(held, cst.SimpleString)) or subject.module.calls(
            node, "builtins.str", "builtins.repr"
        )
    else:
        return False
    return plain and all(is_static(subject, value) for value in values)


def _formatted(subject: Subject, node: cst.FormattedString) -> Message:
    """Sizes and dtypes stay; of tensors the message names the expression, not the value."""
    module = subject.module
    parts: list[cst.BaseFormattedStringContent] = []
    lost: list[str] = []
    for part in node.parts:
        if not isinstance(part, cst.FormattedStringExpression) or _is_plain(subject, part):
            parts.append(part)
            continue
        shown = " ".join(module.code(part.expression).split())
        lost.append(shown)
        parts.append(cst.FormattedStringText(shown.replace("{", "{{").replace("}", "}}")))
        if node.quote[0] in shown or "\\" in shown or "#" in shown:
            raise Refused(f"the message contains the value of `{shown}`")
    made = module.code(node.with_changes(parts=parts))
    if not any(isinstance(part, cst.FormattedStringExpression) for part in parts) and lost:
        made = made.replace("f", "", 1).replace("F", "", 1) if made[0] in "fF" else made
    return Message(made, tuple(lost))


def _is_plain(subject: Subject, part: cst.FormattedStringExpression) -> bool:
    value = part.expression
    if isinstance(value, cst.Call) and subject.module.calls(
        value, "builtins.tuple", "builtins.list"
    ):
        value = value.args[0].value if value.args else value
    return is_static(subject, value)
