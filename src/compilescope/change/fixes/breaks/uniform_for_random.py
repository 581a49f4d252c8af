"""`random.uniform(0.0, 1.0)` in place of `random.random()`, which Dynamo does not support."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.extraction import check_no_decision
from compilescope.change.fixes.values.kinds import Kind
from compilescope.change.fixes.values.scalars import Uses
from compilescope.change.fixes.values.tensors import is_static
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst
from compilescope.record.bodies import GraphCaptured

_SOUND = ("eager", "aot_eager", "aot_eager_decomp_partition")


def _propose(subject: Subject) -> Patch:
    module = subject.module
    found = [
        each
        for each in module.walk(subject.node)
        if isinstance(each, cst.Call) and module.calls(each, "random.random") and not each.args
    ]
    if len(found) != 1:
        raise NotMeant("it is not a single call to random.random()")
    check_no_decision(subject)
    backends = {body.backend for _, body in subject.program.run.of(GraphCaptured) if body.backend}
    if not backends <= set(_SOUND):
        # torch 2.13: Inductor reads the float64 number as float32, and computes with garbage.
        raise Refused(f"the backend {', '.join(sorted(backends))} may misread the number")
    edit = Edit(module)
    drawn = f"{edit.module_name('random')}.uniform(0.0, 1.0)"
    if _meets_a_number(subject, found[0]):
        # Dynamo knows no arithmetic of a drawn number with Python's own; a tensor has it.
        Uses(subject, kind=Kind("float64", ())).follow(found[0])
        torch = edit.module_name("torch")
        drawn = f"{torch}.full((), {drawn}, dtype={torch}.float64)"
    edit.replace(found[0], edit.expression(drawn))
    return Patch(edit.files())


def _meets_a_number(subject: Subject, call: cst.Call) -> bool:
    above = subject.module.parent(call)
    if not isinstance(above, cst.BinaryOperation):
        return False
    return is_static(subject, above.right if above.left is call else above.left)


FIX = Fix(
    id="uniform-for-random",
    title="use random.uniform instead of random.random",
    rules=frozenset({"random-number"}),
    order=40,
    kind="source",
    why="`uniform(0, 1)` is `0 + (1 - 0) * random()`: the same number from the same stream. "
    "Dynamo (torch 2.13) draws it when the compiled code is called, but does not support "
    "`random()` itself.",
    propose=_propose,
)
