"""The test of a branch, as one boolean tensor of no dimensions.

`if self.training and not x.any():` has a part that Dynamo can guard on, and stays an `if`, and a
part that only the numbers decide.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from compilescope.fixes.patch import NotMeant, Refused
from compilescope.fixes.source.booleans import boolean, check_order, is_joined, operands
from compilescope.fixes.source.purity import short
from compilescope.fixes.source.values import is_static, is_tensor
from compilescope.fixes.subject import Subject


@dataclass(frozen=True)
class Truth:
    """`static and tensor`, or `static or tensor`; `static` is empty where all is tensors."""

    tensor: str
    """Boolean, of no dimensions; needs no brackets as an argument."""
    static: str = ""
    joined_by: str = "and"
    atomic: bool = True
    """Needs no brackets as an operand either."""

    @property
    def operand(self) -> str:
        return self.tensor if self.atomic else f"({self.tensor})"

    @property
    def negated(self) -> str:
        return f"~{self.operand}"


def read_test(subject: Subject, test: cst.BaseExpression) -> Truth:
    """Raises `Refused` where a part is neither surely static nor surely a tensor."""
    static, tensors, word = _parts(subject, test)
    if not tensors:
        raise NotMeant("nothing in the condition is known to be a tensor")
    texts = [boolean(subject, each) for each in tensors]
    sign = " & " if word == "and" else " | "
    if len(texts) == 1:
        text, atomic = texts[0]
    else:
        text, atomic = sign.join(t if a else f"({t})" for t, a in texts), False
    code = subject.module.code
    joined = f" {word} ".join(_operand(code(each), each, word) for each in static)
    return Truth(text, joined, word, atomic)


def _operand(text: str, node: cst.CSTNode, word: str) -> str:
    other = cst.Or if word == "and" else cst.And
    loose = isinstance(node, cst.BooleanOperation) and isinstance(node.operator, other)
    return f"({text})" if loose and not node.lpar else text  # type: ignore[attr-defined]


def _parts(
    subject: Subject, test: cst.BaseExpression
) -> tuple[list[cst.BaseExpression], list[cst.BaseExpression], str]:
    word = "or" if is_joined(test, cst.Or) else "and"
    joined = operands(test, cst.Or if word == "or" else cst.And)
    static: list[cst.BaseExpression] = []
    tensors: list[cst.BaseExpression] = []
    for operand in joined:
        if is_static(subject, operand):
            static.append(operand)
        elif is_tensor(subject, operand) or _asks(subject, operand) or len(joined) == 1:
            tensors.append(operand)
        elif not tensors and isinstance(operand, (cst.Name, cst.Attribute)):
            # Dynamo came past it to the tensor that it stopped at.
            static.append(operand)
        else:
            words = f"it is unknown whether `{short(subject.module, operand)}` is a tensor"
            raise Refused(words)
    check_order(subject, tensors[1:])
    names = [each for each in tensors if _assigns(subject, each)]
    if static and names and joined.index(names[0]) < joined.index(static[-1]):
        raise Refused(f"`{short(subject.module, names[0])}` assigns a name in the condition")
    return static, tensors, word


def _assigns(subject: Subject, node: cst.CSTNode) -> bool:
    return any(isinstance(each, cst.NamedExpr) for each in subject.module.walk(node))


def _asks(subject: Subject, node: cst.CSTNode) -> bool:
    """It holds the very expression that Dynamo stopped at."""
    return any(each is subject.node for each in subject.module.walk(node))
