"""`requires_grad=True` of a new tensor, as a call of `requires_grad_()` on it."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst


def _propose(subject: Subject) -> Patch:
    edit = Edit(subject.module)
    call = next((each for each in subject.module.walk(subject.node) if _asks(each)), None)
    if call is None:
        raise NotMeant("`requires_grad` is not passed as a keyword here")
    assert isinstance(call, cst.Call)
    asked = next(arg for arg in call.args if _is_asked(arg))
    if not (isinstance(asked.value, cst.Name) and asked.value.value == "True"):
        raise Refused("`requires_grad` is not always true here")
    kept = [arg for arg in call.args if arg is not asked]
    if kept and call.args[-1] is asked:
        kept[-1] = kept[-1].with_changes(comma=asked.comma)
    plain = call.with_changes(args=kept)
    edit.replace(call, cst.Call(cst.Attribute(plain, cst.Name("requires_grad_"))))
    return Patch(edit.files())


def _is_asked(arg: cst.Arg) -> bool:
    return arg.keyword is not None and arg.keyword.value == "requires_grad"


def _asks(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and any(_is_asked(arg) for arg in node.args)


FIX = Fix(
    id="requires-grad-after",
    title="call requires_grad_() on the new tensor",
    rules=frozenset({"GB0225"}),
    order=40,
    kind="source",
    why="A tensor that is created and then made to require a gradient is the same leaf. Dynamo "
    "can trace the call but not the keyword.",
    propose=_propose,
)
