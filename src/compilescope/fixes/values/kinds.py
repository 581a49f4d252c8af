"""The dtype and the shape that an expression has, as far as the run and the source tell.

What takes the place of a branch computes both of its sides, or asks that they be alike: `where`
widens a dtype and broadcasts a shape, and `cond` raises where they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compilescope.fixes.subject import Subject
from compilescope.fixes.values.facts import ValueFact
from compilescope.fixes.values.graph_values import graph_values
from compilescope.fixes.values.tensors import is_one_number
from compilescope.source.flow import operators
from compilescope.source.flow.liveness import only_value
from compilescope.source.flow.purity import operator_of
from compilescope.source.refusals import NeedsRun, Refused
from compilescope.source.trees import cst
from compilescope.texts import whole_number

_CATEGORIES = {"bool": 0, "uint": 1, "int": 1, "float": 2, "bfloat": 2, "complex": 3}
_PYTHON = {"bool": "bool", "int": "int64", "float": "float32", "complex": "complex64"}
_CASTS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16"}
_CASTS |= {"long": "int64", "int": "int32", "bool": "bool"}
_KEEPING = operators.SAME_SIZE | operators.JOINING | set(_CASTS) | {"where", "to", "lerp"}
_FLOATING = operators.STEEP | {"sigmoid", "tanh", "sin", "cos", "mean", "softmax", "erf"}


@dataclass(frozen=True)
class Kind:
    """Of one value; None is what nobody can tell."""

    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    python: bool = False
    """A number of Python's, which widens no tensor of its category."""
    dims: int | None = None
    """How many dimensions it has, where that is known and its sizes are not."""


UNKNOWN = Kind()
_SHAPES = "only a run can show whether both sides have the same shape"


def check_alike(subject: Subject, one: cst.CSTNode, other: cst.CSTNode) -> None:
    """Raises `Refused` where two sides differ, and `NeedsRun` where they may well."""
    a, b = kind_of(subject, one), kind_of(subject, other)
    _check_same(subject, a, b)
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
        return
    if a.dtype and b.dtype and a.dtype != b.dtype:
        raise Refused(f"one side is {a.dtype}, the other {b.dtype}")
    if a.shape is None or b.shape is None or a.shape == b.shape:
        return
    if len(a.shape) != len(b.shape) or not _sizes_vary(subject):
        raise Refused(f"one side has the shape {list(a.shape)}, the other {list(b.shape)}")


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
        return UNKNOWN
    made = _as_made(subject, node)
    if made is not None:
        return made
    if isinstance(node, (cst.Name, cst.Attribute)):
        return _named(subject, node, depth)
    if isinstance(node, cst.Integer):
        return Kind("int64", (), python=True)
    if isinstance(node, cst.Float):
        return Kind("float32", (), python=True)
    if isinstance(node, cst.UnaryOperation) and not isinstance(node.operator, cst.Not):
        return kind_of(subject, node.expression, depth - 1)
    if isinstance(node, cst.BinaryOperation):
        return _operation(subject, node, depth)
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        parts = [node.left, node.comparisons[0].comparator]
        joined = joined_kind([kind_of(subject, part, depth - 1) for part in parts])
        return Kind("bool", joined.shape, joined.python)
    return _call(subject, node, depth) if isinstance(node, cst.Call) else UNKNOWN


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
    return Kind(
        dtypes.pop() if len(dtypes) == 1 else None,
        shapes.pop() if len(shapes) == 1 else None,
        dims=ranks.pop() if len(ranks) == 1 else None,
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
            value = only_value(module, function, node.value)
            return kind_of(subject, value, depth - 1) if value is not None else UNKNOWN
        return UNKNOWN
    if all(fact.kind == "number" for fact in seen):
        types = {_PYTHON.get(fact.type.removeprefix("builtins.")) for fact in seen}
        return Kind(types.pop() if len(types) == 1 else None, (), python=True)
    return _of_facts(seen)


def _operation(subject: Subject, node: cst.BinaryOperation, depth: int) -> Kind:
    if isinstance(node.operator, cst.MatrixMultiply):
        return Kind(joined_kind(_operands(subject, [node.left, node.right], depth)).dtype)
    found = joined_kind(_operands(subject, [node.left, node.right], depth))
    if isinstance(node.operator, cst.Divide) and found.dtype and category(found.dtype) < 2:
        return Kind("float32", found.shape, found.python)
    return found


def _operands(subject: Subject, nodes: Sequence[cst.CSTNode], depth: int) -> list[Kind]:
    return [kind_of(subject, each, depth - 1) for each in nodes]


def _call(subject: Subject, call: cst.Call, depth: int) -> Kind:
    module = subject.module
    name = operator_of(module, call)
    if name is None:
        return UNKNOWN
    func = call.func
    given: list[cst.CSTNode] = [arg.value for arg in call.args if arg.keyword is None]
    is_function = any(operators.plain_name(m) == name for m in module.meaning(func))
    if not is_function and isinstance(func, cst.Attribute):
        given.insert(0, func.value)
    if not given:
        return UNKNOWN
    first = kind_of(subject, given[0], depth - 1)
    if any(arg.keyword is not None and arg.keyword.value == "dtype" for arg in call.args):
        return Kind(None, first.shape if name in operators.SAME_SIZE else None)
    if name in operators.JOINING:
        joined = joined_kind(_operands(subject, given[:2], depth))
        return _made_floating(joined) if name == "div" else joined
    if name in _CASTS:
        return Kind(_CASTS[name], first.shape)
    if name in operators.SAME_SIZE:
        same = Kind("bool", first.shape) if name in operators.TRUTHS else Kind(*_pair(first))
        return _made_floating(same) if name in _FLOATING else same
    if name in operators.REDUCTIONS and len(given) == 1 and not call.args[len(given) :]:
        keywords = [arg for arg in call.args if arg.keyword is not None]
        return _reduced(name, first) if not keywords else UNKNOWN
    return UNKNOWN


def _pair(kind: Kind) -> tuple[str | None, tuple[int, ...] | None]:
    return kind.dtype, kind.shape


def _reduced(name: str, first: Kind) -> Kind:
    if name in ("any", "all"):
        return Kind("bool", ())
    if name in ("argmax", "argmin", "count_nonzero"):
        return Kind("int64", ())
    whole = first.dtype is not None and category(first.dtype) < 2
    return Kind("int64" if whole and name in ("sum", "prod") else first.dtype, ())


def _made_floating(kind: Kind) -> Kind:
    whole = kind.dtype is not None and category(kind.dtype) < 2
    return Kind("float32" if whole else kind.dtype, kind.shape, kind.python)


def category(dtype: str) -> int:
    """Truths, whole numbers, numbers with a fraction, complex ones."""
    return _CATEGORIES.get(dtype.rstrip("0123456789"), 2)


def joined_kind(parts: Sequence[Kind]) -> Kind:
    """What arithmetic of these gives, by torch's rules of promotion and broadcasting."""
    shape = _broadcast([part.shape for part in parts])
    python = all(part.python for part in parts)
    if any(part.dtype is None for part in parts):
        return Kind(None, shape, python)
    # A tensor with dimensions decides before one without, and that before a number.
    ranks = [0 if part.shape != () else (2 if part.python else 1) for part in parts]
    if any(part.shape is None for part in parts) and len({part.dtype for part in parts}) > 1:
        numbers = [part for part in parts if not part.python]
        if len(numbers) != 1:
            return Kind(None, shape, python)
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
    return Kind(found, shape, python)


def _wider(one: str | None, other: str, same_rank: bool) -> str:
    if one is None or category(other) > category(one):
        return other
    if same_rank and category(other) == category(one):
        return max(one, other, key=_bits)
    return one


def _bits(dtype: str) -> int:
    digits = "".join(each for each in dtype if each.isdigit())
    return whole_number(digits) or 1


def _broadcast(shapes: Sequence[tuple[int, ...] | None]) -> tuple[int, ...] | None:
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
