"""The dtype and the shape that an expression has, as far as the run and the source tell, by torch's
rules of promotion and broadcasting.

What takes the place of a branch computes both of its sides, or asks that they be alike: `where`
widens a dtype and broadcasts a shape, and `cond` raises where they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compilescope.base.texts import whole_number
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.graph_values import RETURNED, ValueFact, graph_values
from compilescope.change.fixes.values.tensors import facts_after, is_one_number
from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.aliasing import runs_without_grad
from compilescope.knowledge.source.flow.liveness import only_value, value_before
from compilescope.knowledge.source.flow.purity import operator_of, short
from compilescope.knowledge.source.refusals import NeedsRun, Refused
from compilescope.knowledge.source.trees import cst, kinds

_PYTHON = {"bool": "bool", "int": "int64", "float": "float32", "complex": "complex64"}
_CASTS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16"}
_CASTS |= {"long": "int64", "int": "int32", "bool": "bool"}
_BY_OPERANDS = {"pow", "clamp", "clip", "clamp_min", "clamp_max", "subtract", "multiply"}
_NAMES = kinds(lambda: (cst.Name, cst.Attribute))
_KEEPING = operators.SAME_SIZE | operators.JOINING | set(_CASTS) | {"where", "to", "lerp"}
_GRADLESS = operators.TRUTHS | {"detach", "zeros_like", "ones_like", "full_like", "argmax"}
_GRADLESS |= {"argmin", "count_nonzero", "new_zeros", "new_ones", "new_full", "isclose", "sign"}
_FLOATING = operators.STEEP - {"pow", "prod"}
_FLOATING |= {"sigmoid", "tanh", "sin", "cos", "mean", "softmax", "erf"}


_SHAPES = "only a run can show whether both sides have the same shape"
_GRAD = "one side requires a gradient, the other does not, and a pick of both always would"


def check_alike(subject: Subject, one: cst.CSTNode, other: cst.CSTNode) -> None:
    """Raises `Refused` where two sides differ, and `NeedsRun` where they may well."""
    a, b = kind_of(subject, one), kind_of(subject, other)
    _check_same(subject, a, b)
    _check_dropped(subject, one, a, other, b)
    unknown = not (a.python or b.python) and (a.shape is None or b.shape is None)
    if unknown and _changes_shape(subject, one) != _changes_shape(subject, other):
        raise NeedsRun(_SHAPES)


def check_like(subject: Subject, before: Sequence[ValueFact], value: cst.CSTNode) -> None:
    """Likewise where one side leaves a name the value that it was seen to have."""
    b = kind_of(subject, value)
    _check_same(subject, _of_facts(before), b)
    if b.shape is None and not b.python and _changes_shape(subject, value):
        raise NeedsRun(_SHAPES)


def _check_same(subject: Subject, a: Kind, b: Kind) -> None:
    if a.python or b.python:
        number, tensor = (a, b) if a.python else (b, a)
        _check_number(number, tensor)
        return
    if a.grad is not None and b.grad is not None and a.grad != b.grad:
        raise Refused(_GRAD)
    if a.dtype and b.dtype and a.dtype != b.dtype:
        raise Refused(f"one side is {a.dtype}, the other {b.dtype}")
    if a.shape is None or b.shape is None or a.shape == b.shape:
        return
    if len(a.shape) != len(b.shape) or not _sizes_vary(subject):
        raise Refused(f"one side has the shape {list(a.shape)}, the other {list(b.shape)}")


def check_accepted(subject: Subject, node: cst.CSTNode) -> None:
    """Raises `Refused` where an operator in it raises for what it is given, by dtype or size: the
    program may come by it only where it does not."""
    for each in subject.module.walk(node):
        name = _operator_name(subject, each)
        if name is None:
            continue
        given = [kind_of(subject, part) for part in _parts(subject, each)]
        tensors = [kind for kind in given if not kind.python]
        shown = short(subject.module, each)
        for kind in tensors:
            if kind.dtype is not None and _raises_for(name, kind.dtype):
                raise Refused(f"`{shown}` raises for {kind.dtype}")
            if kind.shape is not None and 0 in kind.shape and name in _OF_SOMETHING:
                raise Refused(f"`{shown}` raises where there are no elements")
        known = [kind.shape for kind in tensors if kind.shape is not None]
        if name in operators.JOINING and len(known) == 2 and broadcast(known) is None:
            raise Refused(f"`{shown}` raises for the shapes {list(known[0])} and {list(known[1])}")


def _operator_name(subject: Subject, node: cst.CSTNode) -> str | None:
    if isinstance(node, cst.Call):
        return operator_of(subject.module, node)
    if isinstance(node, (cst.BinaryOperation, cst.UnaryOperation)):
        return _SIGNS.get(type(node.operator).__name__)
    return None


def _parts(subject: Subject, node: cst.CSTNode) -> list[cst.CSTNode]:
    """What an operator is given."""
    if isinstance(node, cst.BinaryOperation):
        return [node.left, node.right]
    if isinstance(node, cst.UnaryOperation):
        return [node.expression]
    assert isinstance(node, cst.Call)
    given: list[cst.CSTNode] = [arg.value for arg in node.args if arg.keyword is None]
    name = operator_of(subject.module, node)
    is_function = any(operators.plain_name(m) == name for m in subject.module.meaning(node.func))
    if not is_function and isinstance(node.func, cst.Attribute):
        given.insert(0, node.func.value)
    return given


def _raises_for(name: str, dtype: str) -> bool:
    if category(dtype) == 0:
        return name in operators.NOT_OF_TRUTHS or name in operators.NOT_OF_WHOLE_NUMBERS
    if category(dtype) == 1:
        return name in operators.NOT_OF_WHOLE_NUMBERS
    return name in operators.NOT_OF_FRACTIONS


_SIGNS = {"Add": "add", "Subtract": "sub", "Multiply": "mul", "Divide": "div", "Power": "pow"}
_SIGNS |= {"Minus": "neg", "Modulo": "remainder", "MatrixMultiply": "matmul"}
_SIGNS |= {"BitInvert": "bitwise_not", "BitAnd": "bitwise_and", "BitOr": "bitwise_or"}
_SIGNS |= {"BitXor": "bitwise_xor"}
_OF_SOMETHING = frozenset({"max", "min", "amax", "amin", "aminmax", "argmax", "argmin", "median"})


def check_one_kind(found: Sequence[Kind]) -> None:
    """Raises `Refused` where the results of one operation differ by which value goes in."""
    for what, kinds_ in (
        ("dtype", {each.dtype for each in found}),
        ("shape", {each.shape for each in found}),
        ("gradient", {each.grad for each in found}),
    ):
        if len(kinds_ - {None}) > 1:
            raise Refused(f"the {what} of what is computed depends on the way taken")


def kind_of_fact(fact: ValueFact) -> Kind:
    """Of one value that a name was seen to have."""
    if fact.kind == "number":
        return number_kind(_PYTHON.get(fact.type.removeprefix("builtins.")))
    return _of_facts([fact])


def _check_number(number: Kind, tensor: Kind) -> None:
    """A fraction beside whole numbers makes them fractions, whichever is picked."""
    if tensor.python or number.dtype is None or tensor.dtype is None:
        return
    if category(number.dtype) > category(tensor.dtype):
        shown = "a fraction" if category(number.dtype) == 2 else "a number"
        raise Refused(f"one side is {shown}, the other {tensor.dtype}")


def _check_dropped(
    subject: Subject, one: cst.CSTNode, a: Kind, other: cst.CSTNode, b: Kind
) -> None:
    """Under `no_grad`, a tensor that is handed on as it is keeps its history; a pick has none."""
    names = [kind for node, kind in ((one, a), (other, b)) if isinstance(node, _NAMES)]
    if any(kind.grad for kind in names) and runs_without_grad(subject.module, one):
        raise Refused("one side hands a tensor on that requires a gradient, without gradients")


def _changes_shape(subject: Subject, node: cst.CSTNode, depth: int = 3) -> bool:
    """Something in it may make the result smaller or larger than what goes in."""
    module = subject.module
    if isinstance(node, cst.BaseExpression) and is_one_number(subject, node):
        return False
    if isinstance(node, cst.Name) and depth:
        function = module.function_of(node)
        value = only_value(module, function, node.value) if function else None
        return value is not None and _changes_shape(subject, value, depth - 1)
    if isinstance(node, cst.Subscript):
        return True
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply):
        return True
    if isinstance(node, cst.Call):
        name = operator_of(module, node)
        if name is None or name not in _KEEPING:
            return True
    return any(_changes_shape(subject, each, depth) for each in node.children)


def kind_of(subject: Subject, node: cst.CSTNode, depth: int = 12) -> Kind:
    """From facts for names, and for the rest from how it is written."""
    if depth == 0:
        return _UNKNOWN
    made = _as_made(subject, node)
    if made is not None:
        return made
    if isinstance(node, (cst.Name, cst.Attribute)):
        return _named(subject, node, depth)
    if isinstance(node, cst.Integer):
        return number_kind("int64")
    if isinstance(node, cst.Float):
        return number_kind("float32")
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        parts = [node.left, node.comparisons[0].comparator]
        joined = joined_kind([kind_of(subject, part, depth - 1) for part in parts])
        return Kind("bool", joined.shape, joined.python, grad=False)
    found = _returned(subject, node) or _computed(subject, node, depth)
    if found.shape is None or found.dtype is None:
        seen = facts_after(subject, node)
        found = _completed(found, _of_facts(seen)) if seen else found
    whole = found.dtype is not None and category(found.dtype) < 2
    off = whole or is_without_grad(subject, node)
    return replace(found, grad=False) if off and found is not _UNKNOWN else found


def _returned(subject: Subject, node: cst.CSTNode) -> Kind | None:
    """Of all that is returned, as it was seen; None where it was not."""
    above = subject.module.parent(node)
    if not isinstance(above, cst.Return):
        return None
    seen = subject.program.facts.at(subject.file, subject.module.line(above), RETURNED)
    tensors = seen and all(fact.kind in ("tensor", "parameter") for fact in seen)
    return _of_facts(seen) if tensors else None


def _computed(subject: Subject, node: cst.CSTNode, depth: int) -> Kind:
    if isinstance(node, cst.UnaryOperation) and not isinstance(node.operator, cst.Not):
        return kind_of(subject, node.expression, depth - 1)
    if isinstance(node, cst.BinaryOperation):
        return _operation(subject, node, depth)
    return _call(subject, node, depth) if isinstance(node, cst.Call) else _UNKNOWN


def can_require_grad(subject: Subject, node: cst.CSTNode) -> bool:
    """False where it never can, whatever goes in: whole numbers, and what runs under `no_grad`."""
    dtype = kind_of(subject, node).dtype
    whole = dtype is not None and category(dtype) < 2
    return not whole and not runs_without_grad(subject.module, subject.statement)


def is_without_grad(subject: Subject, node: cst.CSTNode) -> bool:
    """Is no history kept here? By the source around it, or as every graph of the run shows."""
    values = graph_values(subject.program.run)
    if values.drops_grad and not values.computes_grad:
        return True
    return runs_without_grad(subject.module, subject.statement)


def _as_made(subject: Subject, node: cst.CSTNode) -> Kind | None:
    """Of a value that gets a name where it stands: the compilations tell what it was."""
    module = subject.module
    above = module.parent(node)
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    if not isinstance(target, cst.Name):
        return None
    place = module.position(node)
    facts = {
        each.fact
        for each in graph_values(subject.program.run).named.get(module.path, ())
        if each.name == target.value and place.start.line <= each.line <= place.end.line
    }
    return _of_facts(list(facts)) if facts else None


def _of_facts(seen: Sequence[ValueFact]) -> Kind:
    dtypes, shapes = {fact.dtype for fact in seen}, {known_shape(fact) for fact in seen}
    ranks = {None if fact.shape is None else len(fact.shape) for fact in seen}
    grads = {fact.requires_grad for fact in seen}
    return Kind(
        dtypes.pop() if len(dtypes) == 1 else None,
        shapes.pop() if len(shapes) == 1 else None,
        dims=ranks.pop() if len(ranks) == 1 else None,
        grad=grads.pop() if len(grads) == 1 else None,
    )


def _sizes_vary(subject: Subject) -> bool:
    """Two sides that were seen in different calls may differ by what went in."""
    shapes: dict[tuple[str, str], set[tuple[int, ...] | None]] = {}
    for each in graph_values(subject.program.run).incoming.get(subject.file, ()):
        if each.fact.kind == "tensor":
            key = (each.frame.function, each.name)
            shapes.setdefault(key, set()).add(known_shape(each.fact))
    return any(len(found) > 1 or None in found for found in shapes.values())


def known_shape(fact: ValueFact) -> tuple[int, ...] | None:
    """None where a size varies."""
    return None if fact.shape is None or -1 in fact.shape else fact.shape


def _named(subject: Subject, node: cst.Name | cst.Attribute, depth: int) -> Kind:
    module = subject.module
    bare = node.with_changes(lpar=(), rpar=())
    seen = subject.facts(module.code(bare), module.line(node))
    if not seen:
        function = module.function_of(node)
        if isinstance(node, cst.Name) and function is not None:
            value = only_value(module, function, node.value) or value_before(module, node)
            return kind_of(subject, value, depth - 1) if value is not None else _UNKNOWN
        return _UNKNOWN
    if all(fact.kind == "number" for fact in seen):
        types = {kind_of_fact(fact).dtype for fact in seen}
        return number_kind(types.pop() if len(types) == 1 else None)
    return _of_facts(seen)


def _operation(subject: Subject, node: cst.BinaryOperation, depth: int) -> Kind:
    found = joined_kind(_operands(subject, [node.left, node.right], depth))
    if isinstance(node.operator, cst.MatrixMultiply):
        return Kind(found.dtype, grad=found.grad)
    return made_floating(found) if isinstance(node.operator, cst.Divide) else found


def _operands(subject: Subject, nodes: Sequence[cst.CSTNode], depth: int) -> list[Kind]:
    return [kind_of(subject, each, depth - 1) for each in nodes]


def _call(subject: Subject, call: cst.Call, depth: int) -> Kind:
    name = operator_of(subject.module, call)
    if name is None:
        return _UNKNOWN
    given = _parts(subject, call)
    if not given:
        return _UNKNOWN
    keywords = [arg.value for arg in call.args if arg.keyword is not None]
    grad = joined_kind(_operands(subject, [*given, *keywords], depth)).grad
    if name in _GRADLESS:
        grad = False
    found = _called(subject, call, name, (given, keywords), depth)
    return replace(found, grad=grad)


def _called(
    subject: Subject,
    call: cst.Call,
    name: str,
    operands: tuple[Sequence[cst.CSTNode], Sequence[cst.CSTNode]],
    depth: int,
) -> Kind:
    given, keywords = operands
    first = kind_of(subject, given[0], depth - 1)
    if any(arg.keyword is not None and arg.keyword.value == "dtype" for arg in call.args):
        return Kind(None, first.shape if name in operators.SAME_SIZE else None)
    if name in operators.JOINING or name in _BY_OPERANDS:
        joined = joined_kind(_operands(subject, [*given, *keywords], depth))
        return made_floating(joined) if name == "div" else joined
    if name in _CASTS:
        return Kind(_CASTS[name], first.shape)
    if name == "cumsum":
        return Kind(_summed(first.dtype), first.shape)
    if name in operators.SAME_SIZE:
        same = Kind("bool", first.shape) if name in operators.TRUTHS else Kind(*_pair(first))
        return made_floating(same) if name in _FLOATING else same
    if name in operators.REDUCTIONS and len(given) == 1 and not call.args[len(given) :]:
        return _reduced(name, first) if not keywords else _UNKNOWN
    return _UNKNOWN


def _pair(kind: Kind) -> tuple[str | None, tuple[int, ...] | None]:
    return kind.dtype, kind.shape


def _reduced(name: str, first: Kind) -> Kind:
    if name in ("any", "all"):
        return Kind("uint8" if first.dtype == "uint8" else "bool", ())
    if name in ("argmax", "argmin", "count_nonzero"):
        return Kind("int64", ())
    return Kind(_summed(first.dtype) if name in ("sum", "prod", "nansum") else first.dtype, ())


def _summed(dtype: str | None) -> str | None:
    """Whole numbers are added up in 64 bits."""
    return "int64" if dtype is not None and category(dtype) < 2 else dtype


_CATEGORIES = {"bool": 0, "uint": 1, "int": 1, "float": 2, "bfloat": 2, "complex": 3}


@dataclass(frozen=True)
class Kind:
    """Of one value; None is what nobody can tell."""

    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    python: bool = False
    """A number of Python's, which widens no tensor of its category."""
    dims: int | None = None
    """How many dimensions it has, where that is known and its sizes are not."""
    grad: bool | None = None
    """Does it require a gradient?"""


_UNKNOWN = Kind()


def number_kind(dtype: str | None) -> Kind:
    """Of a Python number."""
    return Kind(dtype, (), python=True, grad=False)


def made_floating(kind: Kind) -> Kind:
    """As a division does."""
    whole = kind.dtype is not None and category(kind.dtype) < 2
    return replace(kind, dtype="float32") if whole else kind


def category(dtype: str) -> int:
    """Truths, whole numbers, numbers with a fraction, complex ones."""
    return _CATEGORIES.get(dtype.rstrip("0123456789"), 2)


def joined_kind(parts: Sequence[Kind]) -> Kind:
    """What arithmetic of these gives, by torch's rules of promotion and broadcasting."""
    shape = broadcast([part.shape for part in parts])
    python = all(part.python for part in parts)
    return replace(Kind(_joined_dtype(parts), shape, python), grad=_joined_grad(parts))


def _joined_grad(parts: Sequence[Kind]) -> bool | None:
    grads = {part.grad for part in parts}
    if True in grads:
        return True
    return None if None in grads else False


def _joined_dtype(parts: Sequence[Kind]) -> str | None:
    if any(part.dtype is None for part in parts):
        return None
    # A tensor with dimensions decides before one without, and that before a number.
    ranks = [0 if part.shape != () else (2 if part.python else 1) for part in parts]
    if any(part.shape is None for part in parts) and len({part.dtype for part in parts}) > 1:
        numbers = [part for part in parts if not part.python]
        if len(numbers) != 1:
            return None
    found: str | None = None
    for rank in range(3):
        for part, own in zip(parts, ranks, strict=True):
            if own != rank:
                continue
            assert part.dtype is not None
            same_rank = found is not None and any(
                own == rank and other.dtype == found
                for other, own in zip(parts, ranks, strict=True)
            )
            found = _wider(found, part.dtype, same_rank)
    return found


def _wider(one: str | None, other: str, same_rank: bool) -> str:
    if one is None or category(other) > category(one):
        return other
    if same_rank and category(other) == category(one) and other != one:
        return _both(one, other)
    return one


def _both(one: str, other: str) -> str:
    """The narrowest dtype that holds the numbers of two of a category."""
    wide = max(one, other, key=_bits)
    if category(one) == 2 and _bits(one) == _bits(other):
        return "float32"  # float16 and bfloat16
    unsigned = [each for each in (one, other) if each.startswith("uint")]
    if (len(unsigned) == 1 and unsigned[0] == wide) or _bits(one) == _bits(other):
        return f"int{2 * _bits(wide)}"
    return wide


def _bits(dtype: str) -> int:
    digits = "".join(each for each in dtype if each.isdigit())
    return whole_number(digits) or 1


def broadcast(shapes: Sequence[tuple[int, ...] | None]) -> tuple[int, ...] | None:
    if any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    length = max((len(shape) for shape in known), default=0)
    made = []
    for place in range(-length, 0):
        sizes = {shape[place] for shape in known if len(shape) >= -place} - {1}
        if len(sizes) > 1:
            return None
        made.append(sizes.pop() if sizes else 1)
    return tuple(made)


def _completed(found: Kind, seen: Kind) -> Kind:
    """What the source tells, with what a run adds to it."""
    if found.python:
        return found
    return replace(
        found,
        dtype=found.dtype or seen.dtype,
        shape=seen.shape if found.shape is None else found.shape,
        dims=seen.dims if found.dims is None else found.dims,
        grad=seen.grad if found.grad is None else found.grad,
    )
