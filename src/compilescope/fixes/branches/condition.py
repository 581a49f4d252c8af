"""The condition of a branch, as one boolean tensor of no dimensions.

`if self.training and not x.any():` has a part that Dynamo can guard on, and stays an `if`, and a
part that only the numbers decide.
"""

from __future__ import annotations

from dataclasses import dataclass

from compilescope.fixes.subject import Subject
from compilescope.fixes.values.tensors import (
    facts_of,
    is_one_number,
    is_static,
    is_tensor,
    known_as,
)
from compilescope.source.flow import operators
from compilescope.source.flow.purity import first, operator_of, short
from compilescope.source.refusals import NotMeant, Refused
from compilescope.source.trees import cst


def boolean(subject: Subject, node: cst.BaseExpression) -> tuple[str, bool]:
    """(text, whether it may stand as an operand as it is)."""
    module = subject.module
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        text, atomic = boolean(subject, node.expression)
        return f"~{text if atomic else f'({text})'}", True
    if isinstance(node, cst.BooleanOperation):
        return _joined(subject, node)
    if isinstance(node, cst.Comparison):
        return _compared(subject, node)
    inner = _asked(subject, node)
    if inner is not None:
        return boolean(subject, inner)
    text = module.code(node)
    is_bool = gives_booleans(subject, node)
    if not is_bool:
        text = f"{text if _is_atom(node) else f'({text})'} != 0"
    if not is_one_number(subject, node):
        return f"{text if is_bool and _is_atom(node) else f'({text})'}.reshape(())", True
    return text, is_bool and _is_atom(node)


def gives_booleans(subject: Subject, node: cst.BaseExpression) -> bool:
    seen = facts_of(subject, node)
    if seen:
        return all(fact.dtype == "bool" for fact in seen)
    known = known_as(subject, node)
    if isinstance(known, cst.Call):
        if operator_of(subject.module, known) in ("any", "all") and _of_bytes(subject, known):
            return False
        return operator_of(subject.module, known) in operators.TRUTHS
    return isinstance(known, cst.Comparison) and is_tensor(subject, known) is True


def _of_bytes(subject: Subject, call: cst.Call) -> bool:
    """`x.any()` of uint8 is uint8."""
    parts = [arg.value for arg in call.args]
    if isinstance(call.func, cst.Attribute):
        parts.append(call.func.value)
    return any(fact.dtype == "uint8" for part in parts for fact in facts_of(subject, part))


def _asked(subject: Subject, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`t` of `bool(t)` and `t.item()`."""
    if not isinstance(node, cst.Call):
        return None
    if subject.module.calls(node, "builtins.bool") and len(node.args) == 1:
        return node.args[0].value
    func = node.func
    if isinstance(func, cst.Attribute) and func.attr.value == "item" and not node.args:
        return func.value
    return None


def _joined(subject: Subject, node: cst.BooleanOperation) -> tuple[str, bool]:
    is_or = isinstance(node.operator, cst.Or)
    parts = operands(node, cst.Or if is_or else cst.And)
    for part in parts:
        if is_static(subject, part):
            words = (
                f"`{short(subject.module, part)}` is not a tensor and is nested in the condition"
            )
            raise Refused(words)
    check_order(subject, parts[1:])
    texts = [boolean(subject, part) for part in parts]
    return (" | " if is_or else " & ").join(t if a else f"({t})" for t, a in texts), False


def _compared(subject: Subject, node: cst.Comparison) -> tuple[str, bool]:
    module = subject.module
    parts = [node.left, *(each.comparator for each in node.comparisons)]
    kinds = (cst.In, cst.NotIn, cst.Is, cst.IsNot)
    if any(isinstance(each.operator, kinds) for each in node.comparisons):
        raise Refused(f"`{short(module, node)}` is not a comparison of tensors")
    check_order(subject, list(parts[2:]))
    for part in parts:
        asked = first(module, [part], "by-value")
        if asked is not None and not _is_asked(subject, part):
            raise Refused(asked.words.replace("the branch", "the condition"))
    shown = [_number(subject, part, parts) for part in parts]
    again = [_again(subject, part, text) for part, text in zip(parts, shown, strict=True)]
    signs = [module.code(each.operator).strip() for each in node.comparisons]
    firsts = [shown[0], *again[1:]]
    pairs = [f"{a} {sign} {b}" for a, sign, b in zip(firsts, signs, shown[1:], strict=False)]
    if len(pairs) == 1:
        text = pairs[0]
        if not any(_inner(subject, part) for part in parts):
            text = module.code(node.with_changes(lpar=(), rpar=()))
    else:
        text = " & ".join(f"({pair})" for pair in pairs)
    if not is_one_number(subject, node):
        return f"({text}).reshape(())", True
    return text, False


def _again(subject: Subject, part: cst.BaseExpression, text: str) -> str:
    """`b` of `a < b < c` is compared twice; what it assigns is assigned once."""
    if isinstance(part, cst.NamedExpr):
        return subject.module.code(part.target)
    return text


def _is_asked(subject: Subject, part: cst.BaseExpression) -> bool:
    """`t.item()` and the like, with nothing of that kind inside."""
    inner = _inner(subject, part)
    return inner is not None and first(subject.module, [inner], "by-value") is None


def _inner(subject: Subject, part: cst.BaseExpression) -> cst.BaseExpression | None:
    """`t` of `t.item()`, `bool(t)`, `float(t)`."""
    if isinstance(part, cst.Call) and subject.module.calls(part, "builtins.float"):
        return part.args[0].value if len(part.args) == 1 else None
    return _asked(subject, part)


def _number(subject: Subject, part: cst.BaseExpression, parts: list[cst.BaseExpression]) -> str:
    """`t.item()` is compared in double precision: so is `t` here, unless all are whole numbers."""
    inner = _inner(subject, part)
    if inner is None:
        return subject.module.code(part)
    text = subject.module.code(inner)
    text = text if _is_atom(inner) else f"({text})"
    others = [each for each in parts if each is not part]
    return text if all(_is_round(each) for each in others) else f"{text}.double()"


def _is_round(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.UnaryOperation):
        node = node.expression
    if not isinstance(node, (cst.Integer, cst.Float)):
        return False
    value = float(node.evaluated_value)
    return value.is_integer() and abs(value) <= 256


def _is_atom(node: cst.CSTNode) -> bool:
    kinds = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
    return isinstance(node, kinds) or bool(getattr(node, "lpar", ()))


def check_order(subject: Subject, later: list[cst.BaseExpression]) -> None:
    """Python leaves out the later operands where the first one decides."""
    found = first(subject.module, list(later), "effect", "unknown", "random", "raises")
    if found is not None:
        raise Refused(found.words.replace("the branch", "the condition"))


def is_joined(node: cst.CSTNode, operator: type[cst.BaseBooleanOp]) -> bool:
    return isinstance(node, cst.BooleanOperation) and isinstance(node.operator, operator)


def operands(
    node: cst.BaseExpression, operator: type[cst.BaseBooleanOp]
) -> list[cst.BaseExpression]:
    """Of `a and b and c`, all three."""
    if is_joined(node, operator):
        assert isinstance(node, cst.BooleanOperation)
        return [*operands(node.left, operator), *operands(node.right, operator)]
    return [node]


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
