"""The condition of a branch, as one boolean tensor of no dimensions; `torch.equal` and its like,
which give a Python bool, as comparisons of elements.

`if self.training and not x.any():` has a part that Dynamo can guard on, and stays an `if`, and a
part that only the numbers decide. So has `if any(t.isnan().any() for t in tensors):`, where
`tensors` may be empty.
"""

from __future__ import annotations

from dataclasses import dataclass

from compilescope.change.fixes.branches.named_truths import held_by_name, is_joined, operands
from compilescope.change.fixes.branches.quantifiers import Quantifier, quantifier_of
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.extraction import read_from
from compilescope.change.fixes.values.kinds import category
from compilescope.change.fixes.values.tensors import (
    facts_of,
    is_one_number,
    is_static,
    is_tensor,
    known_as,
)
from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.liveness import names_set, parameters
from compilescope.knowledge.source.flow.purity import first, operator_of, short
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.trees import cst, kinds

_BITWISE = kinds(lambda: (cst.BitAnd, cst.BitOr, cst.BitXor))


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
    close = _all_close(subject, node)
    if close is not None:
        return close, True
    if _equal_sides(subject, node) is not None:
        raise Refused(f"what `{short(module, node)}` compares may have other sizes")
    quantifier = quantifier_of(subject, node)
    if quantifier is not None:
        if quantifier.filled:
            raise Refused(f"what `{short(module, node)}` goes through may be empty")
        return _quantified(subject, quantifier)
    text = module.code(node)
    is_bool = gives_booleans(subject, node)
    if not is_bool:
        text = f"{text if _is_atom(node) else f'({text})'} != 0"
    if not is_one_number(subject, node):
        return f"{text if is_bool and _is_atom(node) else f'({text})'}.reshape(())", True
    return text, is_bool and _is_atom(node)


def _quantified(subject: Subject, found: Quantifier) -> tuple[str, bool]:
    """The truths of all tests, joined; there is one at least."""
    for test in found.tests:
        _check_test(subject, test)
    texts = [boolean(subject, test) for test in found.tests]
    if found.clause is None:
        return joined(texts, " | " if found.word == "any" else " & ")
    clause = subject.module.code(found.clause).strip()
    torch = subject.module.name_of_module("torch")
    if torch is None:
        raise Refused("torch is not imported by its own name")
    check_free(subject, torch)
    return f"{torch}.stack([{texts[0][0]} {clause}]).{found.word}()", True


def joined(texts: list[tuple[str, bool]], sign: str) -> tuple[str, bool]:
    if len(texts) == 1:
        return texts[0]
    return sign.join(text if atomic else f"({text})" for text, atomic in texts), False


def check_free(subject: Subject, name: str) -> None:
    """Raises `Refused` where the function means something of its own by it."""
    function = subject.module.function_of(subject.node)
    if function is None:
        return
    if name in parameters(function) or name in names_set(subject.module, function.body):
        raise Refused(f"the function uses the name {name} for something else")


def _check_test(subject: Subject, test: cst.BaseExpression) -> None:
    """Raises `Refused` unless it surely asks a tensor, all of which are on one device."""
    shown = short(subject.module, test)
    for part in _tests_in(subject, test):
        known = is_tensor(subject, part)
        if known is None and not subject.program.facts.seen:
            raise NeedsRun(f"the source does not show whether `{shown}` is a tensor")
        if not known:
            raise Refused(f"it is unknown whether `{shown}` is always a tensor")
    named = [each for each in subject.module.walk(test) if isinstance(each, cst.Name)]
    seen = [fact for each in named for fact in facts_of(subject, each)]
    if len({fact.device for fact in seen} - {""}) > 1:
        raise Refused(f"the tensors of `{shown}` are on several devices")


def _tests_in(subject: Subject, test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Of `not a.any() and bool(b.all())`, both."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _tests_in(subject, test.expression)
    if isinstance(test, cst.BooleanOperation):
        return [*_tests_in(subject, test.left), *_tests_in(subject, test.right)]
    asked = _asked(subject, test)
    return [test] if asked is None else _tests_in(subject, asked)


def gives_booleans(subject: Subject, node: cst.BaseExpression) -> bool:
    seen = facts_of(subject, node)
    if seen:
        return all(fact.dtype == "bool" for fact in seen)
    known = known_as(subject, node)
    if isinstance(known, cst.BinaryOperation) and isinstance(known.operator, _BITWISE):
        return all(gives_booleans(subject, side) for side in (known.left, known.right))
    if isinstance(known, cst.UnaryOperation) and isinstance(known.operator, cst.BitInvert):
        return gives_booleans(subject, known.expression)
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
    return joined([boolean(subject, part) for part in parts], " | " if is_or else " & ")


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
        if not any(_is_asked(subject, part) for part in parts):
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
    """`t.item()` and the like, with nothing of that kind inside; a sum or product of such."""
    if isinstance(part, cst.BinaryOperation):
        exact = isinstance(part.operator, (cst.Add, cst.Subtract, cst.Multiply))
        sides = (part.left, part.right)
        return exact and all(is_static(subject, x) or _is_asked(subject, x) for x in sides)
    inner = _inner(subject, part)
    return inner is not None and first(subject.module, [inner], "by-value") is None


def _inner(subject: Subject, part: cst.BaseExpression) -> cst.BaseExpression | None:
    """`t` of `t.item()`, `bool(t)`, `float(t)`."""
    if isinstance(part, cst.Call) and subject.module.calls(part, "builtins.float"):
        return read_from(subject.module, part)
    return _asked(subject, part)


def _number(subject: Subject, part: cst.BaseExpression, parts: list[cst.BaseExpression]) -> str:
    """`t.item()` is compared in double precision: so is `t`, unless no dtype rounds the rest."""
    inner = _inner(subject, part)
    if isinstance(part, cst.BinaryOperation) and _is_asked(subject, part):
        # Python computes in double precision.
        sign = subject.module.code(part.operator)
        sides = [_number(subject, side, []) for side in (part.left, part.right)]
        return f"({sign.join(sides)})" if part.lpar else sign.join(sides)
    if inner is None:
        return subject.module.code(part)
    text = subject.module.code(inner)
    text = text if _is_atom(inner) else f"({text})"
    others = [each for each in parts if each is not part]
    return text if others and all(map(_is_round, others)) else f"{text}.double()"


def _is_round(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.UnaryOperation):
        node = node.expression
    if not isinstance(node, (cst.Integer, cst.Float)):
        return False
    value = float(node.evaluated_value)
    # 8 bits: no dtype rounds them.
    return abs(value) <= 256 and (
        value.is_integer() or (abs(value) < 1 and (value * 256).is_integer())
    )


def _is_atom(node: cst.CSTNode) -> bool:
    kinds = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
    return isinstance(node, kinds) or bool(getattr(node, "lpar", ()))


def check_order(subject: Subject, later: list[cst.BaseExpression]) -> None:
    """Python leaves out the later operands where the first one decides."""
    found = first(subject.module, list(later), "effect", "unknown", "random", "raises")
    if found is not None:
        raise Refused(found.words.replace("the branch", "the condition"))


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
    def text(self) -> str:
        """All of it, as Python evaluates it: a bool or a tensor."""
        return f"{self.static} {self.joined_by} {self.tensor}" if self.static else self.tensor

    @property
    def negated(self) -> str:
        return f"~{self.operand}"


def read_test(subject: Subject, test: cst.BaseExpression) -> Truth:
    """Raises `Refused` where a part is neither surely static nor surely a tensor."""
    held = _read_held(subject, test)
    if held is not None:
        return held
    static, tensors, word = _parts(subject, test)
    if not tensors:
        raise NotMeant("nothing in the condition is known to be a tensor")
    code = subject.module.code
    guards = [_operand(code(each), each, word) for each in static]
    if not guards and len(tensors) == 1:
        word = ""
    texts = []
    for each in tensors:
        guard, needed, truth = _guarded(subject, each)
        if guard and word not in ("", needed):
            raise Refused(f"what `{short(subject.module, each)}` goes through may be empty")
        word = needed if guard else word
        guards += [guard] if guard else []
        texts.append(truth)
    text, atomic = joined(texts, " | " if word == "or" else " & ")
    return Truth(text, f" {word} ".join(guards), word or "and", atomic)


def _read_held(subject: Subject, test: cst.BaseExpression) -> Truth | None:
    """Of a name that holds `flag and t`: the tensor where the flag is set."""
    held = held_by_name(subject, test)
    if held is None:
        kinds_seen = {fact.kind for fact in facts_of(subject, test)}
        if kinds_seen & {"tensor", "parameter"} and kinds_seen - {"tensor", "parameter"}:
            raise Refused(f"`{short(subject.module, test)}` is not always a tensor")
        if kinds_seen and not subject.program.facts.seen and is_tensor(subject, test) is None:
            raise NeedsRun(f"it is unknown whether `{short(subject.module, test)}` is a tensor")
        return None
    code = subject.module.code
    text, seen = held.name.value, held.seen
    is_bool = all(f.dtype == "bool" for f in seen) if seen else gives_booleans(subject, held.tensor)
    is_one = all(f.shape == () for f in seen) if seen else is_one_number(subject, held.tensor)
    if not is_bool:
        text = f"({text} != 0)"
    if not is_one:
        text = f"{text}.reshape(())"
    if not held.negated:
        guards = [_operand(code(each), each, held.word) for each in held.static]
        return Truth(text, f" {held.word} ".join(guards), held.word)
    other = "or" if held.word == "and" else "and"
    guards = [_negated(code(each), each) for each in held.static]
    return Truth(f"~{text}", f" {other} ".join(guards), other)


def _negated(text: str, node: cst.CSTNode) -> str:
    return f"not ({text})" if isinstance(node, cst.BooleanOperation) else f"not {text}"


def _guarded(subject: Subject, node: cst.BaseExpression) -> tuple[str, str, tuple[str, bool]]:
    """(Python code that is asked first, the word that joins it, the rest as `boolean` gives it):
    `any` of what may be empty is `len(things) > 0 and ...`, `torch.equal(a, b)` is `a.shape ==
    b.shape and ...`."""
    negated, inner = False, node
    while isinstance(inner, cst.UnaryOperation) and isinstance(inner.operator, cst.Not):
        negated, inner = not negated, inner.expression
    sides = _equal_sides(subject, inner)
    if sides is not None:
        one, other = sides
        if negated:
            return f"{one}.shape != {other}.shape", "or", (f"~({one} == {other}).all()", True)
        return f"{one}.shape == {other}.shape", "and", (f"({one} == {other}).all()", True)
    found = quantifier_of(subject, inner)
    if found is None or not found.filled:
        return "", "", boolean(subject, node)
    text, atomic = _quantified(subject, found)
    holds = (found.word == "any") != negated  # something must be there for it to hold
    guard = found.filled if holds else _emptied(found.filled)
    return guard, "and" if holds else "or", (f"~{text}" if negated else text, atomic)


def _emptied(filled: str) -> str:
    one = filled.startswith("len(") and filled.count(" > 0") == 1
    return filled.replace(" > 0", " == 0") if one else f"not ({filled})"


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
        elif len(joined) == 1 or is_tensor(subject, operand) or _asks(subject, operand):
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
    """It holds the very expression that Dynamo stopped at, or reads another tensor's number."""
    for each in subject.module.walk(node):
        inner = _inner(subject, each) if isinstance(each, cst.Call) else None
        if each is subject.node or (inner is not None and is_tensor(subject, inner)):
            return True
    return False


def _all_close(subject: Subject, node: cst.BaseExpression) -> str | None:
    """`torch.isclose(a, b).all()` of `torch.allclose(a, b)`."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    if operator_of(subject.module, node) != "allclose":
        return None
    func = node.func.with_changes(attr=cst.Name("isclose"))
    return f"{subject.module.code(node.with_changes(func=func))}.all()"


def _equal_sides(subject: Subject, node: cst.BaseExpression) -> tuple[str, str] | None:
    """The sides of `torch.equal(a, b)`, of which the elements can be compared if the sizes are
    equal."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    module = subject.module
    if operator_of(module, node) != "equal":
        return None
    sides = [arg.value for arg in node.args]
    sides = sides if len(sides) == 2 else [node.func.value, *sides]
    shown = short(module, node)
    if not all(isinstance(side, (cst.Name, cst.Attribute)) for side in sides):
        raise Refused(f"`{shown}` compares more than two names, each of which would be read twice")
    seen = [facts_of(subject, side) for side in sides]
    if not all(seen):
        raise NeedsRun(f"the source does not show the dtypes of `{shown}`")
    dtypes = {fact.dtype for facts in seen for fact in facts}
    if len(dtypes) > 1:
        raise Refused(f"`{shown}` meets several dtypes")
    if category(dtypes.pop()) > category("int64"):
        # A tensor is equal to itself, though it holds NaN: the elements are not.
        raise Refused(f"`{shown}` compares numbers that may be NaN")
    one, other = map(module.code, sides)
    return one, other
