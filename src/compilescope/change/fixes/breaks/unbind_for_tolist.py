"""The elements of a tensor as tensors, where they are only used in arithmetic with tensors, or to
pick rows of them."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.kinds import can_require_grad
from compilescope.change.fixes.values.scalars import Uses, write_gathered
from compilescope.change.fixes.values.tensors import facts_of
from compilescope.knowledge.source.flow.aliasing import is_fresh
from compilescope.knowledge.source.flow.liveness import targets
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_OUT_OF_RANGE = "The error for an index that is out of range may have other words."


def _propose(subject: Subject) -> Patch:
    module = subject.module
    call = _call(subject)
    assert isinstance(call.func, cst.Attribute)
    tensor = call.func.value
    seen = facts_of(subject, tensor)
    if any(fact.shape is not None and len(fact.shape) != 1 for fact in seen):
        raise Refused("the list is nested")
    if any(fact.dtype == "bool" for fact in seen):
        raise Refused("a bool behaves differently as a tensor")
    above = module.parent(call)
    if isinstance(above, cst.Assign) and len(above.targets) == 1:
        names = list(targets(above))
        if not isinstance(above.targets[0].target, (cst.Tuple, cst.List)):
            raise Refused("the list itself is used")
    else:
        names = [_item(module, call)]
    uses = Uses(subject, tensor=tensor, indexes=True)
    for name in names:
        if not isinstance(name, cst.Name):
            raise Refused("the numbers are stored in something other than names")
        uses.follow_name(name.value)
    text = f"{module.code(tensor)}{'.detach()' if can_require_grad(subject, tensor) else ''}"
    if not is_fresh(module, tensor):
        text += ".clone()"
    edit = Edit(module)
    edit.replace(call, edit.expression(f"{text}.unbind()"))
    write_gathered(subject, edit, uses)
    if not uses.indexed:
        return Patch(edit.files())
    return Patch(edit.files(), states=_OUT_OF_RANGE, allows=frozenset({"exception-type"}))


def _item(module: SourceModule, call: cst.Call) -> cst.CSTNode:
    """What a loop calls an item of the list: over the list itself, `enumerate` or `zip` of it."""
    place, whole, above = 0, call, module.parent(call)
    outer = module.parent(above) if isinstance(above, cst.Arg) else None
    if isinstance(outer, cst.Call) and module.calls(outer, "builtins.enumerate", "builtins.zip"):
        if any(arg.star or arg.keyword for arg in outer.args):
            raise Refused("the list itself is used")
        counted = module.calls(outer, "builtins.enumerate")
        place = 1 if counted else [arg.value for arg in outer.args].index(call)
        whole, above = outer, module.parent(outer)
    if not isinstance(above, (cst.For, cst.CompFor)) or above.iter is not whole:
        raise Refused("the list itself is used")
    if whole is call:
        return above.target
    if not isinstance(above.target, cst.Tuple) or place >= len(above.target.elements):
        raise Refused("the numbers are stored in something other than names")
    return above.target.elements[place].value


def _call(subject: Subject) -> cst.Call:
    found = [
        each
        for each in subject.module.walk(subject.node)
        if isinstance(each, cst.Call)
        and isinstance(each.func, cst.Attribute)
        and each.func.attr.value == "tolist"
        and not each.args
    ]
    if len(found) != 1:
        raise NotMeant("no single list is made from a tensor here")
    return found[0]


FIX = Fix(
    id="unbind-for-tolist",
    title="use unbind instead of tolist",
    rules=frozenset({"scalar-extraction", "GB0109", "GB0033"}),
    order=40,
    kind="source",
    why="`unbind` returns the same elements as zero-dimensional tensors, which act like "
    "numbers in arithmetic with tensors. `detach` keeps them out of the gradient, as the "
    "numbers were.",
    propose=_propose,
)
