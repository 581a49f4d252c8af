"""A grad mode kept in a variable or attribute, made anew where it is entered."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch, Refused
from compilescope.fixes.source.assignments import only_value
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.subject import Subject

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
    examples=(
        FixExample(
            bad="""import torch


class Teacher(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.quiet = torch.no_grad()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        with self.quiet:  # it does not learn
            y = self.layer(x)
        return y + x


torch.compile(Teacher(), backend="eager")(torch.ones(3))
""",
            good="""import torch


class Teacher(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.quiet = torch.no_grad()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():  # it does not learn
            y = self.layer(x)
        return y + x


torch.compile(Teacher(), backend="eager")(torch.ones(3))
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import threading

import torch

lock = threading.Lock()


def f(x):
    with lock:
        return x + 1


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="not a torch grad mode",
        ),
    ),
)
