"""An optimizer's learning rate becomes a tensor, which a schedule changes in place."""

from __future__ import annotations

import re

from compilescope.fixes.arguments.guarded import cause_of
from compilescope.fixes.compilation.own_files import own_modules
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.subject import Subject
from compilescope.source.flow.liveness import targets
from compilescope.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.source.syntax.edit import Edit
from compilescope.source.syntax.module import SourceModule
from compilescope.source.trees import cst

_SETTING = re.compile(r"\.param_groups\[\d+\]\['(\w+)'\]")
_PLACES = {"lr": 1}
"""Where torch's optimizers take it, if it is not given by name."""


def _propose(subject: Subject) -> Patch:
    match = _SETTING.search(cause_of(subject).subject)
    if match is None:
        raise NotMeant("it is not a setting of an optimizer")
    name = match[1]
    made = [
        (module, call)
        for module in _modules(subject)
        for call in module.walk()
        if isinstance(call, cst.Call) and _is_optimizer(module, call)
    ]
    if len(made) != 1:
        raise Refused("it is unclear which of the program's optimizers it belongs to")
    module, call = made[0]
    arg = _argument(call, name)
    if arg is None:
        raise Refused(f"the optimizer does not get its `{name}` by name")
    if "tensor(" in module.code(arg.value):
        raise NotMeant("it is already a tensor")
    others = [each.keyword.value for each in call.args if each.keyword is not None]
    if {"foreach", "fused"} & set(others):
        raise Refused("foreach and fused optimizers do not accept a tensor for it everywhere")
    if not subject.program.facts.seen and any(_asks(each, name) for each in _modules(subject)):
        raise NeedsRun("the program reads the learning rate itself, which would be a tensor")
    edit = Edit(module)
    torch = edit.module_name("torch")
    text = f"{torch}.tensor({module.code(arg.value)}, dtype={torch}.float64)"
    edit.replace(arg.value, edit.expression(text))
    return Patch(edit.files(), states=f"The optimizer's `{name}` is a tensor.")


def _modules(subject: Subject) -> list[SourceModule]:
    return own_modules(subject.program)


def _asks(module: SourceModule, name: str) -> bool:
    """Does it show or keep the setting: `print(opt.param_groups[0]["lr"])`?"""
    return "get_last_lr" in module.text or any(
        isinstance(node, cst.Subscript) and _is_key(node, name) and not _is_set(module, node, name)
        for node in module.walk()
    )


def _is_set(module: SourceModule, node: cst.Subscript, name: str) -> bool:
    """It is assigned, or only computed with: `group["lr"] = group["lr"] / 2`."""
    if isinstance(module.parent(node), cst.BinaryOperation):
        return True
    line = module.around(node, cst.Assign, cst.AugAssign, cst.Del)
    return line is not None and any(
        isinstance(each, cst.Subscript) and _is_key(each, name) for each in targets(line)
    )


def _is_key(node: cst.Subscript, name: str) -> bool:
    index = node.slice[0].slice
    value = index.value if isinstance(index, cst.Index) else None
    return isinstance(value, cst.SimpleString) and value.evaluated_value == name


def _is_optimizer(module: SourceModule, call: cst.Call) -> bool:
    return any(
        name.startswith("torch.optim.") and ".lr_scheduler" not in name
        for name in module.meaning(call.func)
    )


def _argument(call: cst.Call, name: str) -> cst.Arg | None:
    for number, each in enumerate(call.args):
        if each.keyword is not None and each.keyword.value == name:
            return each
        if each.keyword is None and not each.star and number == _PLACES.get(name):
            return each
    return None


FIX = Fix(
    id="tensor-learning-rate",
    title="make the learning rate a tensor",
    rules=frozenset({"recompile/optimizer-setting"}),
    order=145,
    kind="source",
    why="torch's optimizers accept a tensor for `lr`, and schedulers change it in place, so "
    "its value is not part of the graph. It is float64, like the Python float.",
    propose=_propose,
)
