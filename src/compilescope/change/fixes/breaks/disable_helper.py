"""The one function that cannot be captured is left to Python, with a break where it is called."""

from __future__ import annotations

from compilescope.change.fixes.compilation.paths import LOST_ON_A_WAY, way_to
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.marks import leave_alone
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant
from compilescope.knowledge.source.syntax.edit import Edit


def _propose(subject: Subject) -> Patch:
    steps = way_to(subject)
    last = steps[-1]
    if len(steps) == 1:
        raise NotMeant("it is in the function that is compiled itself")
    edit = Edit(last.module)
    leave_alone(edit, last.function)
    states = f"`{last.function.name.value}` and all that it calls runs eagerly."
    return Patch(edit.files(), states=states, allows=frozenset({"compiles-less"}), keeps_break=True)


FIX = Fix(
    id="disable-helper",
    title="leave the one function to Python (torch.compiler.disable)",
    rules=LOST_ON_A_WAY,
    order=152,
    kind="source",
    why="The function does what it did, in Python. Where it is called, the graph breaks once.",
    propose=_propose,
    placement="all but helper",
    observable=True,
    only_run_tells=True,
)
