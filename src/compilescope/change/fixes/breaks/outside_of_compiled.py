"""A statement that Dynamo cannot trace stays; the rest moves into a function compiled by itself."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from compilescope.change.fixes.branches.effects import only_reports, parts_of
from compilescope.change.fixes.compilation.frames import (
    at_root,
    check_root,
    own_statement,
    stays_outside,
)
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.marks import leave_alone
from compilescope.change.fixes.statements.outputs import output_of
from compilescope.change.fixes.statements.shell import Shell
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import is_static
from compilescope.knowledge.source.flow.cuts import is_docstring, is_light_value, split_around
from compilescope.knowledge.source.flow.purity import first
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import statements_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst, kinds

_TESTS = kinds(lambda: (cst.Comparison, cst.Call))


def _propose(subject: Subject) -> Patch:
    # What a check computes is little; of another call nobody knows.
    subject, helper = _find_root(subject, follow=subject.rule == "validation-guard")
    try:
        return _outside(subject, helper, all_sites=True)
    except Refused as reason:
        try:
            # What else Dynamo stops at may be another fix's matter.
            return _outside(subject, helper, all_sites=False)
        except Refused as other:
            raise (other if isinstance(reason, NotMeant) else reason) from None


def _find_root(subject: Subject, *, follow: bool) -> tuple[Subject, Subject | None]:
    """The subject in the function that is compiled, and the one in a helper that it calls, where
    those are `follow`ed."""
    try:
        check_root(subject)
    except NotMeant:
        raise
    except Refused:
        if not follow:
            raise
        return at_root(subject), subject
    return subject, None


def _outside(subject: Subject, helper: Subject | None, *, all_sites: bool) -> Patch:
    outside = stays_outside(subject, all_sites=all_sites)
    if subject.rule == "validation-guard":
        plain = (cst.If, cst.SimpleStatementLine)
        if not all(isinstance(each, plain) for each in outside):
            raise Refused("the check is inside a statement that does more")
    return _split(subject, helper, outside, _checks(subject, helper, outside))


def _split(
    subject: Subject,
    helper: Subject | None,
    outside: Sequence[cst.BaseStatement],
    checks: Sequence[cst.BaseStatement],
) -> Patch:
    """The patch with which these statements stay, and the `helper` that one of them calls is left
    alone."""
    split = split_around(subject.module, statements_of(subject.function), outside)
    edit = Edit(subject.module)
    Shell(edit, subject.function, split, checks).write()
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


def _propose_log(subject: Subject) -> Patch:
    subject, helper = _find_root(subject, follow=True)
    if helper is None:
        outside = [each for each in stays_outside(subject, all_sites=True) if _logs(subject, each)]
        pure = [each for each in outside if _changes_nothing(subject, each)]
    else:
        body = [each for each in statements_of(helper.function) if not is_docstring(each)]
        outside = [subject.statement] if all(_logs(helper, each) for each in body) else []
        pure = outside if all(_changes_nothing(helper, each) for each in body) else []
    if own_statement(subject, subject.node) not in outside:
        raise NotMeant("it is not a line that is only logged now and then")
    patch = _split(subject, helper, outside, pure)
    if not any(_computes(subject, each) for each in outside):
        return patch
    states = "What is computed only to be logged runs eagerly."
    return msgspec.structs.replace(patch, states=states, allows=frozenset({"compiles-less"}))


def _computes(subject: Subject, statement: cst.BaseStatement) -> bool:
    return any(
        isinstance(each, cst.Assign) and not is_light_value(subject.module, each.value)
        for each in subject.module.walk(statement)
    )


def _logs(subject: Subject, statement: cst.CSTNode) -> bool:
    """`if step % 100 == 0: print(loss.item())`: an output that most calls do not come to."""
    if not isinstance(statement, cst.If) or statement.orelse is not None:
        return False
    parts = list(parts_of(statement.body))
    written = [each.value for each in parts if isinstance(each, cst.Expr)]
    # A warning is for its place in the code, not for a step.
    if any(output_of(subject.module, each) == "warn" for each in written):
        return False
    return all(_logs(subject, each) or only_reports(subject, statement, each) for each in parts)


def _changes_nothing(subject: Subject, statement: cst.BaseStatement) -> bool:
    """But for what is written: neither what is asked nor what is shown has an effect."""
    module = subject.module
    asked = [each.test for each in module.walk(statement) if isinstance(each, cst.If)]
    named = [each.value for each in module.walk(statement) if isinstance(each, cst.Assign)]
    calls = [each.value for each in module.walk(statement) if isinstance(each, cst.Expr)]
    shown = [arg.value for call in calls if isinstance(call, cst.Call) for arg in call.args]
    return first(module, [*asked, *named, *shown], "effect", "unknown", "random") is None


LOG = Fix(
    id="log-outside",
    title="log outside of the graph what is logged now and then",
    rules=frozenset({"print-call", "logging-call", "scalar-extraction"}),
    order=56,
    kind="source",
    why="The function does the same in the same order. Dynamo skips its own frame (not its "
    "callees), and what it logs in some calls is read from what the graph gives.",
    propose=_propose_log,
)

OUTSIDE = Fix(
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

FIXES = (LOG, OUTSIDE)
