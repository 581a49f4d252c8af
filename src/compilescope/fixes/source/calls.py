"""Calls of a function of the file, also by the name that its compiled form was given."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.subject import Subject


def calls_of(subject: Subject, function: cst.FunctionDef) -> Iterator[cst.Call]:
    """`f(...)`, `compiled(...)` after `compiled = torch.compile(f)`, `torch.compile(f)(...)`; of a
    `forward`, calls of what was made of its class."""
    module = subject.module
    made = module.class_of(function)
    names = _names_of(module, function, made)
    for node in module.walk():
        if not isinstance(node, cst.Call):
            continue
        func = node.func
        by_name = isinstance(func, cst.Name) and func.value in names
        at_once = isinstance(func, cst.Call) and _makes(module, func, names)
        if by_name or at_once or (made is not None and _is_method(func, function.name.value)):
            yield node


def _is_method(func: cst.BaseExpression, name: str) -> bool:
    """A method called by its own name; a `forward` is not."""
    return isinstance(func, cst.Attribute) and func.attr.value == name and name != "forward"


def _names_of(
    module: SourceModule, function: cst.FunctionDef, made: cst.ClassDef | None
) -> set[str]:
    """Names of the file that stand for the function, compiled or not."""
    known = {function.name.value} if made is None else set()
    if made is not None:
        known.add(made.name.value)
    instances = set(known) if made is None else set()
    # Each pass goes one step further: model = Model(); compiled = torch.compile(model).
    for _ in range(3):
        for node in module.walk():
            if not isinstance(node, cst.Assign) or not isinstance(node.value, cst.Call):
                continue
            called = node.value.func
            from_class = (
                made is not None
                and isinstance(called, cst.Name)
                and (called.value == made.name.value)
            )
            if from_class or _makes(module, node.value, known | instances):
                instances |= {
                    each.target.value for each in node.targets if isinstance(each.target, cst.Name)
                }
    return instances


def _makes(module: SourceModule, call: cst.Call, names: set[str]) -> bool:
    """Is it `torch.compile` of one of these, or a patch around that?"""
    parts = [each for each in module.walk(call) if isinstance(each, cst.Call)]
    compiles = [each for each in parts if module.calls(each, "torch.compile")]
    return any(
        _is_one_of(arg.value, names)
        or (isinstance(arg.value, cst.Call) and _is_one_of(arg.value.func, names))
        for each in compiles
        for arg in each.args
        if arg.keyword is None
    )


def _is_one_of(node: cst.BaseExpression, names: set[str]) -> bool:
    return isinstance(node, cst.Name) and node.value in names


def argument_for(function: cst.FunctionDef, call: cst.Call, name: str) -> cst.BaseExpression | None:
    """What a call hands in for a parameter; None where that cannot be told."""
    positional = [
        each.name.value for each in (*function.params.posonly_params, *function.params.params)
    ]
    if positional and positional[0] == "self":
        positional = positional[1:]
    for arg in call.args:
        if arg.star:
            return None
        if arg.keyword is not None and arg.keyword.value == name:
            return arg.value
    plain = [arg.value for arg in call.args if arg.keyword is None]
    place = positional.index(name) if name in positional else len(plain)
    return plain[place] if place < len(plain) else None
