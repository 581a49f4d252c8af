"""Output that stays where it is: an operator with an effect, which a graph can hold."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.custom_operator import outline
from compilescope.change.fixes.statements.outputs import (
    is_told_once,
    moved_note,
    output_call,
    output_of,
)
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit


def _propose(subject: Subject) -> Patch:
    call = output_call(subject)
    kind = output_of(subject.module, call) or "log"
    if kind == "warn" or is_told_once(call):
        # The line that is named, and what counts as a repetition, would be the operator's.
        raise Refused("a warning names the line it comes from and is shown once per line")
    edit = Edit(subject.module)
    outline(subject, edit, call, "show" if kind == "progress" else kind)
    return Patch(edit.files(), states=moved_note([kind]))


FIX = Fix(
    id="print-in-graph",
    title="make the output an operator in the graph",
    rules=frozenset(
        {
            "print-call",
            "logging-call",
            "scalar-extraction",
            "numpy-call",
            "outside-call",
            "GB0109",
            "GB0569",
        }
    ),
    order=60,
    kind="source",
    why="The graph itself calls a custom operator with an ordered effect: at the same place, "
    "as often, and with the same values. Eager runs call it too.",
    propose=_propose,
)
