"""A statement that Dynamo cannot trace stays; the rest moves into a function compiled by itself."""

from __future__ import annotations

from compilescope.fixes.compilation.frames import check_root, stays_outside
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.statements.shell import Shell
from compilescope.fixes.subject import Subject
from compilescope.source.flow.cuts import split_around
from compilescope.source.refusals import Refused
from compilescope.source.syntax.bindings import statements_of
from compilescope.source.syntax.edit import Edit


def _propose(subject: Subject) -> Patch:
    check_root(subject)
    try:
        return _outside(subject, all_sites=True)
    except Refused as reason:
        try:
            # What else Dynamo stops at may be another fix's matter.
            return _outside(subject, all_sites=False)
        except Refused:
            raise reason from None


def _outside(subject: Subject, *, all_sites: bool) -> Patch:
    module, function = subject.module, subject.function
    outside = stays_outside(subject, all_sites=all_sites)
    split = split_around(module, statements_of(function), outside)
    edit = Edit(module)
    Shell(edit, function, split).write()
    return Patch(edit.files())


FIX = Fix(
    id="outside-of-compiled",
    title="keep the call outside and compile the rest separately",
    rules=frozenset(
        {
            "backward-inside",
            "outside-call",
            "file-access",
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
