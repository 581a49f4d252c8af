"""A statement that Dynamo cannot trace stays; the rest moves into a function compiled by itself."""

from __future__ import annotations

from compilescope.fixes.branches.effects import parts_of
from compilescope.fixes.compilation.frames import at_root, check_root, stays_outside
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.statements.marks import leave_alone
from compilescope.fixes.statements.shell import Shell
from compilescope.fixes.subject import Subject
from compilescope.fixes.values.tensors import is_static
from compilescope.source.flow.cuts import is_docstring, split_around
from compilescope.source.flow.purity import first
from compilescope.source.refusals import NotMeant, Refused
from compilescope.source.syntax.bindings import statements_of
from compilescope.source.syntax.edit import Edit
from compilescope.source.trees import cst, kinds

_TESTS = kinds(lambda: (cst.Comparison, cst.Call))


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
        except Refused as other:
            raise (other if isinstance(reason, NotMeant) else reason) from None


def _outside(subject: Subject, helper: Subject | None, *, all_sites: bool) -> Patch:
    module, function = subject.module, subject.function
    outside = stays_outside(subject, all_sites=all_sites)
    if subject.rule == "validation-guard":
        plain = (cst.If, cst.SimpleStatementLine)
        if not all(isinstance(each, plain) for each in outside):
            raise Refused("the check is inside a statement that does more")
    split = split_around(module, statements_of(function), outside)
    edit = Edit(module)
    Shell(edit, function, split, _checks(subject, helper, outside)).write()
    if helper is None:
        return Patch(edit.files())
    if helper.file == subject.file:
        leave_alone(edit, helper.function)
        return Patch(edit.files())
    other = Edit(helper.module)
    leave_alone(other, helper.function)
    return Patch({**edit.files(), **other.files()})


def _checks(
    subject: Subject, helper: Subject | None, outside: list[cst.BaseStatement]
) -> list[cst.BaseStatement]:
    """Those that only look at tensors, and raise."""
    if helper is None:
        return [each for each in outside if _only_raises(subject, each)]
    body = [each for each in statements_of(helper.function) if not is_docstring(each)]
    whole = all(_only_raises(helper, each) for each in body)
    return [subject.statement] if whole else []


def _only_raises(subject: Subject, statement: cst.CSTNode) -> bool:
    """`if x.isnan().any(): raise ValueError(...)`. Not a check of shapes or types: without it, what
    is computed early could raise something else first."""
    if not isinstance(statement, cst.If) or statement.orelse is not None:
        return False
    inner, test = list(parts_of(statement.body)), statement.test
    if len(inner) != 1 or not isinstance(inner[0], cst.Raise):
        return False
    tests = [each for each in subject.module.walk(test) if isinstance(each, _TESTS)]
    if any(is_static(subject, each) for each in tests):
        return False
    return first(subject.module, [test], "effect", "unknown", "random") is None


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
