"""A statement that Dynamo cannot trace stays; the rest moves into a function compiled by itself."""

from __future__ import annotations

from compilescope.fixes.compilation.frames import at_root, check_root, stays_outside
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.statements.shell import Shell, leave_alone
from compilescope.fixes.subject import Subject
from compilescope.source.flow.cuts import split_around
from compilescope.source.refusals import NotMeant, Refused
from compilescope.source.syntax.bindings import statements_of
from compilescope.source.syntax.edit import Edit
from compilescope.source.trees import cst


def _propose(subject: Subject) -> Patch:
    helper = None
    try:
        check_root(subject)
    except NotMeant:
        raise
    except Refused:
        # What a check computes is little; of another call nobody knows.
        if subject.rule != "validation-guard":
            raise
        subject, helper = at_root(subject), subject
    try:
        return _outside(subject, helper, all_sites=True)
    except Refused as reason:
        try:
            # What else Dynamo stops at may be another fix's matter.
            return _outside(subject, helper, all_sites=False)
        except Refused:
            raise reason from None


def _outside(subject: Subject, helper: Subject | None, *, all_sites: bool) -> Patch:
    module, function = subject.module, subject.function
    outside = stays_outside(subject, all_sites=all_sites)
    if subject.rule == "validation-guard":
        plain = (cst.If, cst.SimpleStatementLine)
        if not all(isinstance(each, plain) for each in outside):
            raise Refused("the check is inside a statement that does more")
    split = split_around(module, statements_of(function), outside)
    edit = Edit(module)
    Shell(edit, function, split).write()
    if helper is None:
        return Patch(edit.files())
    if helper.file == subject.file:
        leave_alone(edit, helper.function)
        return Patch(edit.files())
    other = Edit(helper.module)
    leave_alone(other, helper.function)
    return Patch({**edit.files(), **other.files()})


FIX = Fix(
    id="outside-of-compiled",
    title="keep the statement outside and compile the rest separately",
    rules=frozenset(
        {
            "backward-inside",
            "outside-call",
            "file-access",
            "validation-guard",
            "GB0123",
            "GB0125",
            "GB0206",
            "GB8985",
            "GB0264",
            "GB0117",
            "GB0228",
            "GB4198",
            "GB0179",
        }
    ),
    order=80,
    kind="source",
    why="The function does the same in the same order. Dynamo skips its own frame (not its "
    "callees), and everything that can be compiled is in one function that it calls.",
    propose=_propose,
)
