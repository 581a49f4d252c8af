"""What evaluating an expression may do besides giving a value.

A branch that Python did not take does nothing. Computed anyway, it must do nothing that shows:
no side effect, no exception, no drawn number, no NaN that comes back through the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.liveness import only_value
from compilescope.knowledge.source.syntax.bindings import definitions_of, is_receiver
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds

Concern = Literal["effect", "unknown", "random", "raises", "costly", "steep", "by-value"]
"""`effect`: it does something; `unknown`: it may, nobody can tell; `steep`: its gradient may be NaN
where its value is thrown away; the rest as the tables of `operators` have them."""

_BUILTINS = {"len", "abs", "tuple", "list", "isinstance", "hasattr", "getattr", "type", "range"}
_OUTPUT = {"print", "input", "open", "exec", "eval", "setattr", "delattr", "next"}
_CHANGING = {"append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add"}
_DATACLASSES = frozenset({"dataclasses.dataclass"})
_NAMED_TUPLES = frozenset({"typing.NamedTuple"})
_LITERALS = kinds(lambda: (cst.Integer, cst.Float, cst.SimpleString))
_SHAPE_METHODS = {
    "size",
    "dim",
    "numel",
    "stride",
    "ndimension",
    "is_floating_point",
    "element_size",
}


class Remark(msgspec.Struct, frozen=True):
    concern: Concern
    words: str
    """What it is, as a clause: `the branch calls helper()`."""
    subscript: cst.Subscript | None = None
    """The one that may raise."""
    call: cst.Call | None = None
    """The one that nobody knows."""
    steep: cst.CSTNode | None = None
    """The one with such a gradient."""


def remarks(module: SourceModule, node: cst.CSTNode) -> Iterator[Remark]:
    """All that is to be said against evaluating it without need."""
    for each in module.walk(node):
        if isinstance(each, cst.Call):
            yield from _call(module, each)
        elif isinstance(each, cst.BinaryOperation):
            yield from _operation(module, each)
        elif isinstance(each, cst.Subscript):
            yield from _subscript(module, each)
        elif isinstance(each, (cst.Await, cst.Yield)):
            yield Remark("effect", f"the branch contains `{short(module, each)}`")
        elif isinstance(each, cst.NamedExpr):
            yield Remark("effect", f"`{short(module, each)}` assigns in an expression")
        elif isinstance(each, (cst.ListComp, cst.GeneratorExp, cst.DictComp, cst.SetComp)):
            yield Remark("unknown", f"the branch loops: `{short(module, each)}`")


def first(module: SourceModule, nodes: list[cst.CSTNode], *concerns: Concern) -> Remark | None:
    """The first remark of these kinds; an effect before all else."""
    found = [each for node in nodes for each in remarks(module, node) if each.concern in concerns]
    found.sort(key=lambda each: concerns.index(each.concern))
    return found[0] if found else None


def short(module: SourceModule, node: cst.CSTNode) -> str:
    text = " ".join(module.code(node).split())
    return text if len(text) <= 60 else text[:59] + "…"


def operator_of(module: SourceModule, call: cst.Call) -> str | None:
    """The plain name of torch's operator that is called; None for anything else. A method by such
    a name is taken for a tensor's, unless it is called on a module or on a class."""
    func = call.func
    for meaning in module.meaning(func):
        name = operators.plain_name(meaning)
        if name is not None:
            return name
    if isinstance(func, cst.Attribute) and func.attr.value in operators.KNOWN:
        if is_receiver(module, func.value) or _is_imported(module, func.value):
            return None
        return func.attr.value
    return None


def _is_imported(module: SourceModule, node: cst.BaseExpression) -> bool:
    """`np`, `math`, `mypackage.ops`."""
    head = node
    while isinstance(head, cst.Attribute):
        head = head.value
    if not isinstance(head, cst.Name):
        return False
    scope = module.scope(head)
    found = list(scope[head.value]) if scope is not None else []
    kinds = (cst.Import, cst.ImportFrom)
    return any(isinstance(getattr(each, "node", None), kinds) for each in found)


def _call(module: SourceModule, call: cst.Call) -> Iterator[Remark]:
    shown = short(module, call)
    name = operator_of(module, call)
    if name is not None:
        yield from _operator(name, shown, call)
        return
    meanings = module.meaning(call.func)
    builtin = next((m.removeprefix("builtins.") for m in meanings if m.startswith("builtins.")), "")
    if builtin in _BUILTINS or (builtin == "sum" and _is_of_display(module, call)):
        return
    func = call.func
    method = func.attr.value if isinstance(func, cst.Attribute) else ""
    if method in _SHAPE_METHODS or makes_record(module, func):
        return
    if builtin in _OUTPUT:
        yield Remark("effect", f"the branch calls {builtin}()")
    elif method in _CHANGING:
        yield Remark("effect", f"`{shown}` changes `{short(module, func.value)}`")  # type: ignore[attr-defined]
    elif operators.out_of_place(method) is not None or (method.endswith("_") and method[:-1]):
        yield Remark("effect", f"`{shown}` changes a tensor in place")
    elif builtin in ("float", "int", "bool", "max", "min"):
        if call.args and all(isinstance(arg.value, _LITERALS) for arg in call.args):
            return  # `float("-inf")`
        yield Remark("by-value", f"`{shown}` needs a Python number")
    else:
        words = f"the branch calls {short(module, func)}(), which may do more than compute"
        yield Remark("unknown", words, call=call)


def makes_record(module: SourceModule, func: cst.BaseExpression) -> bool:
    """Is it a dataclass or a named tuple of the file that keeps what it is given, and does no
    more?"""
    found = definitions_of(module, func) if isinstance(func, cst.Name) else []
    made = found[0] if len(found) == 1 else None
    if not isinstance(made, cst.ClassDef):
        return False
    written = [each.decorator for each in made.decorators]
    named = [each.func if isinstance(each, cst.Call) else each for each in written]
    decorated = [bool(module.meaning(each) & _DATACLASSES) for each in named]
    bases = [bool(module.meaning(each.value) & _NAMED_TUPLES) for each in made.bases]
    # A base of another kind may have a method that is called.
    known = all(decorated) and all(bases) and len(decorated) + len(bases) == 1
    return known and not any(_is_own_making(module, each) for each in module.walk(made.body))


def _is_own_making(module: SourceModule, node: cst.CSTNode) -> bool:
    """A method that runs when one is made, or a function that makes a field."""
    if isinstance(node, cst.FunctionDef):
        return node.name.value in ("__init__", "__new__", "__post_init__", "__setattr__")
    if isinstance(node, cst.Arg) and node.keyword is not None:
        factory = node.keyword.value == "default_factory"
        return factory and not any(m.startswith("builtins.") for m in module.meaning(node.value))
    return False


def _is_of_display(module: SourceModule, call: cst.Call) -> bool:
    """`sum(parts)` of a list that the function itself made: to go through it uses nothing up."""
    given = call.args[0].value if len(call.args) == 1 and not call.args[0].star else None
    function = module.function_of(call)
    if not isinstance(given, cst.Name) or function is None:
        return False
    made = only_value(module, function, given.value)
    return isinstance(made, (cst.List, cst.Tuple, cst.ListComp))


def _operator(name: str, shown: str, call: cst.Call) -> Iterator[Remark]:
    if any(arg.keyword is not None and arg.keyword.value == "out" for arg in call.args):
        yield Remark("effect", f"`{shown}` writes to `out`")
    elif name in operators.RANDOM:
        yield Remark("random", f"`{shown}` draws random numbers")
    elif name in operators.BY_VALUE:
        yield Remark("by-value", f"`{shown}` needs a Python number")
    elif name in operators.RAISING:
        yield Remark("raises", f"`{shown}` raises for some values")
    elif name in operators.COSTLY:
        yield Remark("costly", f"`{shown}` is too expensive to compute when it is not used")
    elif name in operators.STEEP and not _is_harmless(name, call):
        words = f"the gradient of `{shown}` may be NaN where it is not used"
        yield Remark("steep", words, steep=call)
    elif name not in operators.KNOWN:
        yield Remark("unknown", f"`{shown}` may do more than compute")


def _is_harmless(name: str, call: cst.Call) -> bool:
    """`x.pow(2)`, `x.div(4)`."""
    last = call.args[-1].value if call.args else None
    if name == "pow":
        return _is_whole(last)
    return name in ("div", "divide", "true_divide") and _is_nonzero(last)


def _operation(module: SourceModule, node: cst.BinaryOperation) -> Iterator[Remark]:
    shown = short(module, node)
    if isinstance(node.operator, (cst.FloorDivide, cst.Modulo)) and not _is_nonzero(node.right):
        yield Remark("raises", f"`{shown}` raises on integer division by zero")
    elif _is_mean(module, node):
        return
    elif (isinstance(node.operator, cst.Divide) and not _is_nonzero(node.right)) or (
        isinstance(node.operator, cst.Power) and not _is_whole(node.right)
    ):
        words = f"the gradient of `{shown}` may be NaN where it is not used"
        yield Remark("steep", words, steep=node)
    elif isinstance(node.operator, cst.MatrixMultiply):
        yield Remark("costly", f"`{shown}` is too expensive to compute when it is not used")


def _is_mean(module: SourceModule, node: cst.BinaryOperation) -> bool:
    """`sum(parts) / len(parts)`: of nothing it is no tensor."""
    one, other = node.left, node.right
    if not (isinstance(one, cst.Call) and isinstance(other, cst.Call)):
        return False
    named = module.calls(one, "builtins.sum") and module.calls(other, "builtins.len")
    same = [module.code(arg.value) for arg in one.args] == [
        module.code(arg.value) for arg in other.args
    ]
    divided = isinstance(node.operator, cst.Divide)
    return divided and named and same and _is_of_display(module, one)


def _is_nonzero(node: cst.CSTNode | None) -> bool:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        node = node.expression
    return isinstance(node, (cst.Integer, cst.Float)) and float(node.evaluated_value) != 0


def _is_whole(node: cst.CSTNode | None) -> bool:
    """A power whose derivative is finite: 1, 2, 3, ..."""
    return isinstance(node, cst.Integer) and int(node.evaluated_value) >= 1


def _subscript(module: SourceModule, node: cst.Subscript) -> Iterator[Remark]:
    above = module.parent(node)
    if isinstance(above, cst.Annotation):
        return
    for element in node.slice:
        index = element.slice
        if not isinstance(index, cst.Index):
            continue
        value = index.value
        if isinstance(value, cst.UnaryOperation):
            value = value.expression
        if not isinstance(value, (cst.Integer, cst.Ellipsis, cst.SimpleString)) and not (
            isinstance(value, cst.Name) and value.value == "None"
        ):
            words = f"`{short(module, node)}` raises if the index is out of range"
            yield Remark("raises", words, node)
            return
