"""A tensor copied by its own methods instead of by the `copy` module."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import known_tensor, needs_grad
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst, kinds

_NEW = {"copy.deepcopy": "detach().clone()", "copy.copy": "detach()"}
_DETACHED = "If the tensor requires a gradient, its copy no longer does."
_ATOMS = kinds(lambda: (cst.Name, cst.Attribute, cst.Subscript, cst.Call))


def _propose(subject: Subject) -> Patch:
    module, edit = subject.module, Edit(subject.module)
    call = next((each for each in module.walk(subject.node) if module.calls(each, *_NEW)), None)
    if not isinstance(call, cst.Call):
        raise NotMeant("the copy is not made on this line")
    if len(call.args) != 1 or call.args[0].keyword is not None or call.args[0].star:
        raise Refused("the copy uses a memo")
    value = call.args[0].value
    if not known_tensor(subject, value):
        raise Refused(f"`{module.code(value)}` is not known to be a tensor")
    if isinstance(value, cst.Name) and any(
        fact.requires_grad for fact in subject.facts(value.value)
    ):
        raise Refused("the tensor requires a gradient, and its copy would not")
    (name,) = module.meaning(call.func) & set(_NEW)
    shown = module.code(value)
    if not isinstance(value, _ATOMS) and not value.lpar:
        shown = f"({shown})"
    edit.replace(call, edit.expression(f"{shown}.{_NEW[name]}"))
    return Patch(edit.files(), states=_DETACHED if needs_grad(subject, [value]) else "")


FIX = Fix(
    id="clone-for-deepcopy",
    title="use detach().clone() instead of copy.deepcopy",
    rules=frozenset({"GB4198", "GB0179", "GB0208"}),
    order=30,
    kind="source",
    why="A deep copy of a tensor without a gradient is a clone: new memory, the same values, "
    "no autograd history. A shallow copy (`copy.copy`) is another tensor on the same "
    "memory, which is what `detach()` returns.",
    propose=_propose,
)
