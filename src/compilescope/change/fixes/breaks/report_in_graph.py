"""A check of a tensor that only prints or logs: check and message as one operator of the graph."""

from __future__ import annotations

from compilescope.change.fixes.branches.branch import RULES, asked_by_name, branch_of
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.custom_operator import outline
from compilescope.change.fixes.statements.outputs import is_told_once, moved_note, output_of
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.purity import first, short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst


def _propose(subject: Subject) -> Patch:
    branch = branch_of(subject)
    kinds = _outputs(subject, branch)
    if not kinds:
        raise NotMeant("the branch produces no output")
    if "warn" in kinds:
        raise Refused("the branch warns, and a warning names the line it comes from")
    found = first(subject.module, [branch.test], "effect", "random")
    if found is not None:
        raise Refused(found.words.replace("the branch", "the condition"))
    edit = Edit(subject.module)
    verb = kinds[0] if len(set(kinds)) == 1 and kinds[0] != "progress" else "tell"
    outline(subject, edit, branch, verb)
    return Patch(edit.files(), states=moved_note(kinds))


def _outputs(subject: Subject, branch: cst.If) -> list[str]:
    """What kinds of output the branch consists of. Raises `Refused` for whatever else it does."""
    module = subject.module
    block = branch.body.body
    if isinstance(branch.orelse, cst.Else):
        block = [*block, *branch.orelse.body.body]
    elif branch.orelse is not None:
        raise NotMeant("it has an `elif`")
    parts = [part for line in block for part in getattr(line, "body", [line])]
    kinds: list[str] = []
    for part in parts:
        call = part.value if isinstance(part, cst.Expr) else None
        kind = output_of(module, call)
        if kind is None or not isinstance(call, cst.Call):
            words = f"the branch contains `{short(module, part)}`"
            raise Refused(words) if kinds else NotMeant(words)
        kinds.append("warn" if is_told_once(call) else kind)
    return kinds


FIX = Fix(
    id="report-in-graph",
    title="make the check and its message an operator in the graph",
    rules=RULES,
    order=59,
    kind="source",
    why="The graph itself calls a custom operator with an ordered effect, at the same place "
    "and with the same values. It checks the numbers and writes the same message.",
    propose=asked_by_name(_propose, inside=True),
)
