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
        raise NotMeant("nothing is entered by a with statement here")
    kept = [item for item in entered.items if isinstance(item.item, (cst.Name, cst.Attribute))]
    if not kept:
        raise NotMeant("what is entered is made in the with statement itself")
    for item in kept:
        value = only_value(subject, item.item)
        _check_mode(module, value)
        if item.asname is not None:
            raise Refused("the with statement names what it enters")
        edit.replace(item.item, value)
    return Patch(edit.files())


def _check_mode(module: SourceModule, value: cst.BaseExpression) -> None:
    if not isinstance(value, cst.Call) or not module.meaning(value.func) & _MODES:
        raise NotMeant(f"`{module.code(value)}` is none of torch's grad modes")
    for arg in value.args:
        if not (isinstance(arg.value, cst.Name) and arg.value.value in ("True", "False", "None")):
            raise Refused(f"`{module.code(value)}` does not always mean the same")


FIX = Fix(
    id="grad-mode-called",
    title="make the grad mode where it is entered",
    rules=frozenset({"context-manager"}),
    order=20,
    kind="source",
    why="Dynamo knows `torch.no_grad()` and its like where they are called in the `with` itself. One "
    "that is made anew does the same as one that was kept: it has no other state.",
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
            because="none of torch's grad modes",
        ),
    ),
)
