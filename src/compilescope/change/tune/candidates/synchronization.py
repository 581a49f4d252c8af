"""A sum of numbers that is read off the device in each step: kept on the device instead."""

from __future__ import annotations

from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst


def _propose(tuned: TunedProgram) -> Patch:
    tuned.needs_cuda("only the queue of a device can be waited for: it needs")
    module = tuned.step_module
    if module is None:
        raise Refused("the step is not in one of your own files")
    edit = Edit(module)
    found = False
    for node in module.walk():
        if not isinstance(node, cst.AugAssign) or not isinstance(node.operator, cst.AddAssign):
            continue
        value = _read_off(node.value)
        if value is not None and module.around(node, cst.For, cst.While) is not None:
            edit.replace(node.value, edit.expression(f"{module.code(value)}.detach()"))
            found = True
    if not found:
        raise Refused("no `total += x.item()` stands in a loop of the step's file")
    return Patch(edit.files(), states="The sum is a tensor on the device, and prints as one.")


def _read_off(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """The `x` of `x.item()`."""
    if not isinstance(value, cst.Call) or value.args or not isinstance(value.func, cst.Attribute):
        return None
    return value.func.value if value.func.attr.value == "item" else None


CANDIDATE = TuneCandidate(
    id="sum-on-device",
    title="sums of .item() kept on the device",
    price="The sum is a tensor, of the tensor's precision.",
    propose=_propose,
    order=38,
    helps="launches",
)
