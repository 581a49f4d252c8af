"""Python values that a function only hands back: computed as tensors, converted after the graph.

`return y, y.tolist()` becomes a core, which is compiled and gives tensors, and a shell around it
that makes the list: whoever calls the function gets the same as before. A helper that counts with
such a value is called by the shell.
"""

from __future__ import annotations

from compilescope.change.fixes.compilation.frames import at_root, check_root, stays_outside
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.afterwards import (
    called_afterwards,
    converts,
    done_afterwards,
)
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.trees import cst


def _propose(subject: Subject) -> Patch:
    try:
        check_root(subject)
    except NotMeant:
        raise
    except Refused:
        there = at_root(subject)
        return called_afterwards(subject, there.module, there.function)
    if subject.module.function_of(subject.node) is not subject.function:
        raise NotMeant("it is in a function within")
    try:
        return _converted(subject, all_sites=True)
    except Refused as reason:
        try:
            # What else Dynamo stops at may be another fix's matter.
            return _converted(subject, all_sites=False)
        except Refused:
            raise reason from None


def _converted(subject: Subject, *, all_sites: bool) -> Patch:
    outside = stays_outside(subject, all_sites=all_sites)
    for each in outside:
        if not isinstance(each, cst.SimpleStatementLine) or not converts(subject, each):
            raise NotMeant("it is not a statement that reads a tensor's values")
    return done_afterwards(subject, outside)


FIX = Fix(
    id="converted-after",
    title="return tensors from the graph and convert them outside",
    rules=frozenset(
        {"scalar-extraction", "GB0033", "GB0109", "GB0124", "tensor-if", "tensor-truth"}
    ),
    order=118,
    kind="source",
    why="The function gives the same Python values, made of the same tensors. Dynamo skips its "
    "own frame (not its callees), and what computes the tensors is in one function that it "
    "calls. Only the conversions are left outside.",
    propose=_propose,
)
