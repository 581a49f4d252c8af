"""A grad mode kept in a variable or attribute, created in the `with` that enters it instead."""

from __future__ import annotations

from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.subject import Subject
from compilescope.fixes.values.assignments import only_value
from compilescope.source.refusals import NotMeant, Refused
from compilescope.source.syntax.edit import Edit
from compilescope.source.syntax.module import SourceModule
from compilescope.source.trees import cst

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


FIX = Fix(
    id="grad-mode-called",
    title="create the grad mode in the with statement",
    rules=frozenset({"context-manager"}),
    order=20,
    kind="source",
    why="Dynamo supports `torch.no_grad()` and similar contexts when they are created in the "
    "`with` itself. A new one does the same as a stored one: it has no other state.",
    propose=_propose,
)
