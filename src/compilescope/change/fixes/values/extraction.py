"""A number read out of a tensor (`x.max().item()`, `float(x)`), and the tensor in its place.

Also whether Python decides by the number: as a symbol of the graph it cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.kinds import can_require_grad, kind_of
from compilescope.change.fixes.values.tensors import bare, facts_of, is_one_number
from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.aliasing import is_fresh
from compilescope.knowledge.source.flow.liveness import reads
from compilescope.knowledge.source.flow.purity import operator_of, short
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst, kinds

_CONVERSIONS = ("builtins.float", "builtins.int")
_INT_RESULTS = {"argmax", "argmin", "count_nonzero", "long", "int"}
_LITERALS = kinds(lambda: (cst.Integer, cst.Float, cst.SimpleString))
_WRAPPED = kinds(lambda: (cst.Attribute, cst.Call, cst.Name, cst.Subscript))


@dataclass(frozen=True)
class Extraction:
    """One number read out of a tensor."""

    node: cst.Call
    """The whole of it: `float(x.max().item())`."""
    tensor: cst.BaseExpression
    """What it is read from: `x.max()`."""


@dataclass(frozen=True)
class Limit:
    """`max(x.item(), 1.0)`: the number, or another one if that is larger."""

    node: cst.Call
    argument: str
    """Of `clamp`: `min=1.0`."""


def limit_around(subject: Subject, found: Extraction) -> Limit | None:
    """Where the number comes first, Python gives NaN for NaN, as `clamp` does; zeros of two signs
    it tells apart in its own way."""
    module = subject.module
    arg = module.parent(found.node)
    call = module.parent(arg) if isinstance(arg, cst.Arg) else None
    if not isinstance(call, cst.Call) or len(call.args) != 2 or call.args[0] is not arg:
        return None
    other = call.args[1]
    limit = number(other.value)
    if not isinstance(limit, float) or not limit or other.keyword is not None or arg.star:
        return None
    if "int" in (kind_of(subject, found.tensor).dtype or ""):
        return None
    for function, word in (("builtins.max", "min"), ("builtins.min", "max")):
        if module.calls(call, function):
            return Limit(call, f"{word}={module.code(other.value)}")
    return None


def extraction_of(subject: Subject) -> Extraction:
    """The one that the finding is about. Raises `Refused` where there is none that keeping the
    tensor could replace."""
    node = subject.node
    if isinstance(node, cst.BaseStatement):
        found = [each for each in subject.module.walk(node) if read_from(subject.module, each)]
        if not found:
            raise NotMeant("no single number is read here")
        node = found[0]
    return extraction_at(subject, node)


def extraction_at(subject: Subject, node: cst.CSTNode) -> Extraction:
    """Likewise of one expression."""
    module = subject.module
    tensor = read_from(module, node)
    if tensor is None:
        raise NotMeant("no single number is read here")
    while (inner := read_from(module, tensor)) is not None:
        tensor = inner
    outermost = _outermost(module, node)
    to_int = any(module.calls(each, "builtins.int") for each in _between(module, outermost, tensor))
    _check_type(subject, tensor, to_int)
    return Extraction(outermost, tensor)


def extractions_beside(subject: Subject, first: Extraction) -> Iterator[Extraction]:
    """Others in the same statement: Dynamo stops at them too, once it is past the first."""
    done = {first.node, *subject.module.walk(first.node)}
    for node in subject.module.walk(subject.statement):
        if node in done or read_from(subject.module, node) is None:
            continue
        try:
            found = extraction_at(subject, node)
        except Refused:
            continue
        done |= {found.node, *subject.module.walk(found.node)}
        yield found


def _outermost(module: SourceModule, node: cst.CSTNode) -> cst.Call:
    """With the conversions around it: all of `float(x.item())`."""
    arg = module.parent(node)
    outer = module.parent(arg) if isinstance(arg, cst.Arg) else None
    if isinstance(outer, cst.Call) and module.calls(outer, *_CONVERSIONS) and len(outer.args) == 1:
        return _outermost(module, outer)
    assert isinstance(node, cst.Call)
    return node


def _between(module: SourceModule, outer: cst.CSTNode, inner: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for each in module.ancestors(inner):
        yield each
        if each is outer:
            return


def read_from(module: SourceModule, node: cst.CSTNode) -> cst.BaseExpression | None:
    if not isinstance(node, cst.Call):
        return None
    if module.calls(node, *_CONVERSIONS) and len(node.args) == 1 and not node.args[0].star:
        value = node.args[0].value
        return None if isinstance(value, _LITERALS) else value  # `float("-inf")` reads nothing
    func = node.func
    if isinstance(func, cst.Attribute) and func.attr.value == "item" and not node.args:
        return func.value
    return None


def _check_type(subject: Subject, tensor: cst.BaseExpression, to_int: bool) -> None:
    name = operator_of(subject.module, tensor) if isinstance(tensor, cst.Call) else None
    seen = {fact.dtype for fact in facts_of(subject, tensor)}
    if dtype := kind_of(subject, tensor).dtype:
        seen.add(dtype)
    if isinstance(tensor, cst.Comparison) or name in operators.TRUTHS or "bool" in seen:
        raise Refused("a bool behaves differently as a tensor")
    whole = name in _INT_RESULTS or (bool(seen) and all("int" in dtype for dtype in seen))
    if to_int and not whole:
        raise Refused("`int()` raises on NaN and truncates fractions")


def as_tensor(subject: Subject, tensor: cst.BaseExpression, *, only_compared: bool = False) -> str:
    """The tensor that has the number's value, and no history and no later change either. A
    comparison has no history whatever it compares."""
    text = subject.module.code(tensor)
    graded = not only_compared and can_require_grad(subject, tensor)
    one, fresh = is_one_number(subject, tensor), is_fresh(subject.module, tensor)
    alone = only_compared and one and fresh  # all that a name is set to
    if alone:
        return text if "\n" in text else subject.module.code(bare(tensor))
    if not isinstance(tensor, _WRAPPED) and not tensor.lpar:
        text = f"({text})"
    text += ".detach()" if graded else ""
    if not one:
        text += ".reshape(())"
    return text if fresh else f"{text}.clone()"


_DRAWS = ("random.choice", "random.choices", "random.sample", "random.shuffle")
_CAPTURED = "data-dependent expression"
"""What torch says of a symbol that stands for such a number."""
_READ_BY_OPERATOR = "Data dependent operator"
SIZING = frozenset(
    {
        "arange",
        "expand",
        "full",
        "narrow",
        "new_empty",
        "new_full",
        "new_ones",
        "new_zeros",
        "ones",
        "rand",
        "randn",
        "repeat",
        "reshape",
        "split",
        "topk",
        "view",
        "zeros",
    }
)
"""Operators whose output has the number for a size, as far as they take a number."""


def is_of_symbol(subject: Subject) -> bool:
    """Did Dynamo stop at a number that the graph holds already, and not at a tensor?"""
    return _CAPTURED in subject.finding.title


def check_no_decision(subject: Subject) -> None:
    """Raises `Refused` where a branch or a loop hangs on the number: the break would only move."""
    module, node = subject.module, subject.node
    if is_of_symbol(subject):
        raise Refused("the number is already a symbol in the graph, and this line needs its value")
    for each in module.walk(node):
        if isinstance(each, cst.Call) and module.calls(each, *_DRAWS):
            raise Refused(f"`{short(module, each)}` is not a number read from a tensor")
    if isinstance(node, cst.BaseStatement):
        return
    _check_sizing(subject, node)
    for each in (node, *_calls_for_it(module, node)):
        where = _decided_by(module, each)
        if where is not None:
            raise Refused(f"Python control flow depends on the number in `{short(module, where)}`")


def _decided_by(module: SourceModule, node: cst.CSTNode) -> cst.CSTNode | None:
    """What hangs on it, or on a name that it is given."""
    where = decides(module, node)
    names = _names_given(module.statement_of(node))
    if where is None and names:
        function = module.function_of(node)
        found = reads(module, function.body) if function is not None else ()
        where = next((w for r in found if r.value in names and (w := decides(module, r))), None)
    return where


def _calls_for_it(module: SourceModule, node: cst.CSTNode) -> Iterator[cst.Call]:
    """The calls in this file of the function that returns it."""
    function = module.function_of(node)
    if function is None or module.around(node, cst.Return) is None:
        return
    for each in module.walk():
        if isinstance(each, cst.Call) and _last_name(each.func) == function.name.value:
            yield each


def _check_sizing(subject: Subject, node: cst.CSTNode) -> None:
    """torch 2.13 raises an internal error for a symbol that an operator makes of an argument, and
    that no size of what it gives shows: `torch.roll(x, random.randint(0, 3))`."""
    if _READ_BY_OPERATOR not in subject.finding.title or subject.program.facts.seen:
        return
    module = subject.module
    if not isinstance(node, cst.Call) or read_from(module, node) is not None:
        return
    name = operator_of(module, node) or _last_name(node.func)
    if name not in SIZING:
        raise NeedsRun(
            f"it is unknown whether a graph accepts the number in `{short(module, node)}`"
        )


def _last_name(func: cst.CSTNode) -> str:
    return func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", "")


def _names_given(statement: cst.BaseStatement) -> set[str]:
    if not isinstance(statement, cst.SimpleStatementLine):
        return set()
    return {
        target.target.value
        for part in statement.body
        if isinstance(part, cst.Assign)
        for target in part.targets
        if isinstance(target.target, cst.Name)
    }


def decides(module: SourceModule, node: cst.CSTNode) -> cst.CSTNode | None:
    """The test that it is part of, or the loop that runs so many times."""
    below = node
    for above in module.ancestors(node):
        if isinstance(above, (cst.If, cst.While, cst.IfExp)) and above.test is below:
            return above.test
        if isinstance(above, cst.Assert) and above.test is below:
            return above.test
        if isinstance(above, cst.BooleanOperation):
            return above
        if isinstance(above, cst.Call) and module.calls(above, "builtins.range"):
            return above
        if isinstance(above, (cst.Subscript, cst.BaseStatement)) or _asks_for_identity(above):
            return None
        below = above
    return None


def _asks_for_identity(node: cst.CSTNode) -> bool:
    """`count is None`: no number decides that."""
    return isinstance(node, cst.Comparison) and all(
        isinstance(each.operator, (cst.Is, cst.IsNot)) for each in node.comparisons
    )
