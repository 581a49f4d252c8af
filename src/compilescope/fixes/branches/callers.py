"""Checks that no caller relies on a function handing back its own argument.

A fix may make a copy in its place; who changes one of the two in place would see the difference.
"""

from __future__ import annotations

from compilescope.fixes.subject import Subject
from compilescope.source.flow.aliasing import changes_in_place
from compilescope.source.flow.liveness import parameters, targets
from compilescope.source.flow.purity import short
from compilescope.source.refusals import NeedsRun
from compilescope.source.syntax.module import SourceModule
from compilescope.source.trees import cst

_MARKS = ("requires_grad_", "share_memory_", "retain_grad")


def check_not_the_argument(subject: Subject, name: str) -> None:
    """Raises `NeedsRun` where a function may hand an argument back as it is, and a caller changes
    one of the two in place: a copy would part them."""
    module, function = subject.module, subject.function
    if subject.program.facts.seen or name not in parameters(function):
        return
    returned = any(
        isinstance(each, cst.Return) and each.value is not None and module.code(each.value) == name
        for each in module.walk(function.body)
    )
    main = subject.program.main
    for own in {module.path, main} - {""} if returned else ():
        _check_callers(subject.program.module(own), function)


def _check_callers(module: SourceModule, function: cst.FunctionDef) -> None:
    held: set[str] = set()
    for node in module.walk():
        call = node.value if isinstance(node, cst.Assign) else None
        if not isinstance(call, cst.Call) or not isinstance(call.func, (cst.Name, cst.Attribute)):
            continue
        if not any(name.startswith("torch.") for name in module.meaning(call.func)):
            held |= {t.value for t in targets(node) if isinstance(t, cst.Name)}
            held |= {arg.value.value for arg in call.args if isinstance(arg.value, cst.Name)}
    inside = {id(each) for each in module.walk(function)}
    for where, name in changes_in_place(module, module.tree):
        marks = any(mark in module.code(where) for mark in _MARKS)
        if name in held and id(where) not in inside and not marks:
            raise NeedsRun(f"`{short(module, where)}` may change the argument or its copy")
