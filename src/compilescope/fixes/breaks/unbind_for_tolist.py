"""The elements of a tensor as tensors, where they are only used in arithmetic with tensors."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch, Refused
from compilescope.fixes.source.aliasing import is_fresh
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.liveness import targets
from compilescope.fixes.source.scalars import Uses
from compilescope.fixes.source.values import facts_of
from compilescope.fixes.subject import Subject


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
    elif isinstance(above, cst.For) and above.iter is call:
        names = [above.target]
    else:
        raise Refused("the list itself is used")
    uses = Uses(subject)
    for name in names:
        if not isinstance(name, cst.Name):
            raise Refused("the numbers are stored in something other than names")
        uses.follow_name(name.value)
    text = f"{module.code(tensor)}.detach()"
    if not is_fresh(module, tensor):
        text += ".clone()"
    edit = Edit(module)
    edit.replace(call, edit.expression(f"{text}.unbind()"))
    return Patch(edit.files())


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
    examples=(
        FixExample(
            bad="""import torch


def f(x, box):
    left, top = (box * 2).tolist()  # in pixels
    return x * left + top


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(2))
""",
            good="""import torch


def f(x, box):
    left, top = (box * 2).detach().unbind()  # in pixels
    return x * left + top


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(2))
""",
        ),
        FixExample(
            bad="""import torch


def f(x, weights):
    out = torch.zeros_like(x)
    for weight in weights.tolist():
        out = (out + x) * weight
    return out


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(2))
""",
            good="""import torch


def f(x, weights):
    out = torch.zeros_like(x)
    for weight in weights.detach().clone().unbind():
        out = (out + x) * weight
    return out


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(2))
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


def f(x, sizes):
    parts = x.split(sizes.tolist())
    return parts[0] * 2


torch.compile(f, backend="eager")(torch.ones(3), torch.tensor([1, 2]))
""",
            because="the list itself",
        ),
    ),
)
