"""Grad modes that Dynamo cannot follow where they are: created in a `with` of the function instead."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.constants import only_value
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import statements_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_MODES = {
    "torch.no_grad",
    "torch.enable_grad",
    "torch.inference_mode",
    "torch.set_grad_enabled",
    "torch.autograd.no_grad",
    "torch.autograd.enable_grad",
    "torch.autograd.grad_mode.no_grad",
    "torch.autograd.grad_mode.enable_grad",
    "torch.autograd.grad_mode.inference_mode",
    "contextlib.nullcontext",
}


def _propose(subject: Subject) -> Patch:
    module, edit = subject.module, Edit(subject.module)
    entered = subject.statement
    if not isinstance(entered, cst.With):
        raise NotMeant("no `with` statement enters a context here")
    kept = [item for item in entered.items if isinstance(item.item, (cst.Name, cst.Attribute))]
    if not kept:
        raise NotMeant("the context is already created in the `with` statement")
    for item in kept:
        value = only_value(subject, item.item)
        _check_mode(module, value)
        if item.asname is not None:
            raise Refused("the `with` statement binds a name")
        edit.replace(item.item, value)
    return Patch(edit.files())


def _check_mode(module: SourceModule, value: cst.BaseExpression) -> None:
    if not isinstance(value, cst.Call) or not module.meaning(value.func) & _MODES:
        raise NotMeant(f"`{module.code(value)}` is not a torch grad mode")
    for arg in value.args:
        if not (isinstance(arg.value, cst.Name) and arg.value.value in ("True", "False", "None")):
            raise Refused(f"`{module.code(value)}` is not always the same grad mode")


def _propose_inside(subject: Subject) -> Patch:
    module, edit = subject.module, Edit(subject.module)
    if getattr(subject.finding, "context", "") != "builtins.method":
        raise NotMeant("Dynamo does not stop at a method here")
    # Dynamo does not say which method it is: what calls them chooses among those of the file.
    found = [
        each
        for each in module.walk()
        if isinstance(each, cst.FunctionDef) and _is_decorated_method(module, each)
    ]
    if not found:
        raise NotMeant("no method in this file is decorated with a grad mode")
    for function in found:
        edit.replace(function, _with_inside(function))
    return Patch(edit.files())


def _is_decorated_method(module: SourceModule, function: cst.FunctionDef) -> bool:
    """By a grad mode alone; a generator would enter it at another time."""
    block = module.parent(function)
    if not isinstance(block and module.parent(block), cst.ClassDef) or function.asynchronous:
        return False
    if len(function.decorators) != 1 or not isinstance(function.body, cst.IndentedBlock):
        return False
    try:
        _check_mode(module, function.decorators[0].decorator)
    except Refused:
        return False
    if len(function.body.body) == 1 and function.get_docstring() is not None:
        return False
    return not any(isinstance(each, cst.Yield) for each in module.walk(function.body))


def _with_inside(function: cst.FunctionDef) -> cst.FunctionDef:
    """The decorator's mode around the body, after the docstring."""
    body = statements_of(function)
    above = body[:1] if function.get_docstring() is not None else []
    (mode,) = function.decorators
    inner = cst.With([cst.WithItem(mode.decorator)], cst.IndentedBlock(body[len(above) :]))
    return function.with_changes(
        decorators=(),
        lines_after_decorators=(),
        leading_lines=[
            *function.leading_lines,
            *mode.leading_lines,
            *function.lines_after_decorators,
        ],
        body=function.body.with_changes(body=[*above, inner]),
    )


CALLED = Fix(
    id="grad-mode-called",
    title="create the grad mode in the with statement",
    rules=frozenset({"context-manager"}),
    order=20,
    kind="source",
    why="Dynamo supports `torch.no_grad()` and similar contexts when they are created in the "
    "`with` itself. A new one does the same as a stored one: it has no other state.",
    propose=_propose,
)

INSIDE = Fix(
    id="grad-mode-inside",
    title="enter the grad mode inside the method",
    rules=frozenset({"GB0116"}),
    order=30,
    kind="source",
    why="A decorated method of an object that is created in the compiled code is a wrapper that "
    "Dynamo cannot build (torch 2.13). The decorator enters the mode for the whole body, as a "
    "`with` around the body does.",
    propose=_propose_inside,
)

FIXES = (CALLED, INSIDE)
