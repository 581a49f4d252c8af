"""A number read out of a tensor: `x.max().item()`, `float(x)`; and the tensor in its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from compilescope.fixes.patch import NotMeant, Refused
from compilescope.fixes.source import operators
from compilescope.fixes.source.aliasing import is_fresh
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.source.purity import operator_of
from compilescope.fixes.source.values import facts_of, is_one_number
from compilescope.fixes.subject import Subject

_CONVERSIONS = ("builtins.float", "builtins.int")
_INT_RESULTS = {"argmax", "argmin", "count_nonzero", "long", "int"}
_LITERALS = (cst.Integer, cst.Float, cst.SimpleString)
_WRAPPED = (cst.Attribute, cst.Call, cst.Name, cst.Subscript)


@dataclass(frozen=True)
class Extraction:
    """One number read out of a tensor."""

    node: cst.Call
    """The whole of it: `float(x.max().item())`."""
    tensor: cst.BaseExpression
    """What it is read from: `x.max()`."""


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
    if isinstance(tensor, cst.Comparison) or name in operators.TRUTHS or "bool" in seen:
        raise Refused("a bool behaves differently as a tensor")
    whole = name in _INT_RESULTS or (bool(seen) and all("int" in dtype for dtype in seen))
    if to_int and not whole:
        raise Refused("`int()` raises on NaN and truncates fractions")


def as_tensor(subject: Subject, tensor: cst.BaseExpression) -> str:
    """The tensor that has the number's value, and no history and no later change either."""
    text = subject.module.code(tensor)
    if not isinstance(tensor, _WRAPPED) and not tensor.lpar:
        text = f"({text})"
    text += ".detach()"
    if not is_one_number(subject, tensor):
        text += ".reshape(())"
    return text if is_fresh(subject.module, tensor) else f"{text}.clone()"
