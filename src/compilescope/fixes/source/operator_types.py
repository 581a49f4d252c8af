"""The types of what an operator of the graph is handed: tensors, numbers and texts."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from compilescope.fixes.facts import ValueFact
from compilescope.fixes.patch import Refused
from compilescope.fixes.source.aliasing import is_buffer
from compilescope.fixes.source.bindings import is_of_module
from compilescope.fixes.source.extraction import read_from
from compilescope.fixes.source.graph_values import graph_values
from compilescope.fixes.source.liveness import only_value
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.source.module_state import kind_of_global
from compilescope.fixes.source.outputs import output_of
from compilescope.fixes.source.values import is_static
from compilescope.fixes.subject import Subject

_NOT_SHOWN = ("detach", "tolist", "numpy", "data")
_NUMBERS = {"builtins.int": "int", "builtins.float": "float", "builtins.bool": "bool"}


def annotation(subject: Subject, node: cst.BaseExpression, torch: str) -> str:
    """The type of one of the operator's parameters."""
    text = subject.module.code(node)
    seen = subject.facts(text) or subject.facts(text, subject.module.line(subject.statement))
    kinds = {_kind(fact) for fact in seen} or {_kind_as_written(subject, node)}
    if "tensor" in kinds:
        _check_shown(subject, node, seen)
    if kinds == {"tensor"}:
        return f"{torch}.Tensor"
    if kinds == {"tensor", "none"}:
        return f"{torch}.Tensor | None"
    if len(kinds) == 1 and (kind := next(iter(kinds))) in ("int", "float", "bool", "str"):
        return kind
    if not seen and text.startswith(("self.", "cls.")):
        raise Refused(f"the type of `{text}` is unknown")
    raise Refused(f"`{text}` is not a tensor, number or string that an operator accepts")


def _check_shown(subject: Subject, node: cst.BaseExpression, seen: Sequence[ValueFact]) -> None:
    """A tensor that is printed whole shows its `grad_fn`, which it has not inside an operator."""
    module = subject.module
    if not _is_shown(subject, node):
        return
    history = any(fact.requires_grad for fact in seen)
    if history or (not seen and graph_values(subject.program.run).computes_grad):
        raise Refused(f"`{module.code(node)}` would be shown without its `grad_fn`")


def _is_shown(subject: Subject, node: cst.CSTNode) -> bool:
    """Is it, or a tensor that is computed from it, printed whole, and not as a number?"""
    module = subject.module
    for below in [node, *module.ancestors(node)]:
        if read_from(module, below) is not None or is_static(subject, below):
            return False
        if isinstance(below, cst.Attribute) and below.attr.value in _NOT_SHOWN:
            return False
        above = module.parent(below)
        if isinstance(above, cst.FormattedStringExpression):
            return above.format_spec is None
        if isinstance(above, cst.Arg) and output_of(module, module.parent(above)):
            return True
        if above is None or isinstance(above, cst.BaseStatement):
            return False
    return False


def _kind(fact: ValueFact) -> str:
    if fact.kind in ("tensor", "parameter"):
        return "tensor"
    if fact.kind == "number":
        return _NUMBERS.get(fact.type, "")
    if fact.kind == "text":
        return "str" if fact.type == "builtins.str" else ""
    return fact.kind if fact.kind == "none" else ""


def _kind_as_written(subject: Subject, node: cst.BaseExpression) -> str:
    """Where no run was looked at: a counter is an int, all other names are taken for tensors."""
    module = subject.module
    if not isinstance(node, cst.Name):
        return _kind_of_attribute(module, node)
    if is_of_module(module, node):
        return kind_of_global(module, node.value)
    value = only_value(module, subject.function, node.value)
    if value is not None and (kind := _kind_of_value(subject, value)):
        return kind
    for definition in module.scope(node)[node.value]:  # type: ignore[index]
        above = getattr(definition, "node", None)
        loop = module.around(above, cst.For) if above is not None else None
        if loop is not None and module.calls(loop.iter, "builtins.range", "builtins.enumerate"):
            counter: cst.BaseExpression = loop.target
            if isinstance(counter, cst.Tuple):
                counter = counter.elements[0].value
            if isinstance(counter, cst.Name) and counter.value == node.value:
                return "int"
    return "tensor"


def _kind_of_value(subject: Subject, value: cst.CSTNode) -> str:
    """Of what is no tensor, as far as it is plain; empty where it may be one."""
    constant = _kind_of_constant(value)
    if constant:
        return constant
    if isinstance(value, cst.Call) and subject.module.calls(value, "builtins.len"):
        return "int"
    if read_from(subject.module, value) is not None or is_static(subject, value):
        return "number"
    return ""


def _kind_of_constant(value: cst.CSTNode) -> str:
    if isinstance(value, cst.Integer):
        return "int"
    if isinstance(value, cst.Float):
        return "float"
    return "str" if isinstance(value, (cst.SimpleString, cst.FormattedString)) else ""


def _kind_of_attribute(module: SourceModule, node: cst.BaseExpression) -> str:
    """`self.name`, by what the file assigns to it."""
    if is_buffer(module, node):
        return "tensor"
    code = module.code(node)
    given = [
        each.value
        for each in module.walk()
        if isinstance(each, cst.Assign) and any(module.code(t.target) == code for t in each.targets)
    ]
    kinds = {_kind_of_constant(value) for value in given}
    return kinds.pop() if len(kinds) == 1 else ""
