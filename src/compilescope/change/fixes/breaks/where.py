"""A branch on a tensor whose sides only compute values: both are computed, `torch.where` picks.

The branch is an `if`, a conditional expression, or two ways to return: a fix for each. Where a side
must not be computed unless it is taken, `cond.py` answers instead.
"""

from __future__ import annotations

from compilescope.change.fixes.branches.branch import (
    RULES,
    asked_by_name,
    branch_of,
    conditional_of,
    replace_branch,
    torch_name,
    under,
)
from compilescope.change.fixes.branches.condition import read_test
from compilescope.change.fixes.branches.effects import Effect
from compilescope.change.fixes.branches.numbers import check_number, check_operand, check_uses
from compilescope.change.fixes.branches.predication import (
    Predication,
    check_pure,
    check_test,
    gradient_note,
)
from compilescope.change.fixes.branches.returns import (
    ReturnedSide,
    ReturnedValue,
    read_returning,
    returns_somewhere,
)
from compilescope.change.fixes.branches.steep import guarded, is_steep
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.kinds import check_alike, kind_of
from compilescope.change.fixes.values.tensors import is_static
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.comments import with_comments
from compilescope.knowledge.source.syntax.edit import Edit, replace_expression
from compilescope.knowledge.source.trees import cst

_SHORT_TEST = 40
"""Letters of a test that is written twice. Chosen: it still fits on a line with both sides."""


def _for_if(subject: Subject) -> Patch:
    whole = branch_of(subject)
    if returns_somewhere(subject.module, whole):
        raise NotMeant("one side returns")
    truth = read_test(subject, whole.test)
    edit = Edit(subject.module)
    work = Predication(subject, subject.function, whole, torch_name(subject, edit))
    inside = _written(edit, work.effects(truth))
    if not inside:
        raise NotMeant("neither side does anything")
    elsewise = _written(edit, work.branch(whole.orelse)) if truth.static else []
    replace_branch(edit, whole, under(edit, truth, inside, whole, elsewise))
    sides = [side for side in (whole.body, whole.orelse) if side is not None]
    return Patch(edit.files(), states=gradient_note(subject, sides))


def _written(edit: Edit, effects: list[Effect]) -> list[cst.BaseStatement]:
    return [made for effect in effects for made in edit.statements(effect.line())]


WHERE_FOR_IF = Fix(
    id="where-for-if",
    title="use torch.where instead of the if",
    rules=RULES,
    order=40,
    kind="source",
    why="Both sides only compute values, so computing both and selecting one with "
    "`torch.where` gives the same result. Tensors that were changed in place still are.",
    propose=asked_by_name(_for_if),
)


def _for_conditional(subject: Subject) -> Patch:
    whole = conditional_of(subject)
    edit = Edit(subject.module)
    made = edit.expression(_picked(subject, whole, torch_name(subject, edit)))
    replace_expression(edit, whole, made)
    return Patch(edit.files(), states=gradient_note(subject, [whole.body, whole.orelse]))


def _picked(subject: Subject, node: cst.IfExp, torch: str) -> str:
    truth = read_test(subject, node.test)
    # Within another one, its test says nothing where that one is not taken.
    test = "" if isinstance(subject.module.parent(node), cst.IfExp) else truth.tensor
    for side in (node.body, node.orelse):
        if not isinstance(side, cst.IfExp):
            check_pure(subject, (side,), guards=0 < len(test) <= _SHORT_TEST)
    _check_kinds(subject, node)
    one = _side(subject, node.body, torch, test)
    other = _side(subject, node.orelse, torch, test, otherwise=True)
    made = f"{torch}.where({truth.tensor}, {one}, {other})"
    if not truth.static:
        return made
    if truth.joined_by == "and":
        return f"({made} if {truth.static} else {other})"
    return f"({one} if {truth.static} else {made})"


def _side(
    subject: Subject, node: cst.BaseExpression, torch: str, test: str, *, otherwise: bool = False
) -> str:
    if isinstance(node, cst.IfExp) and not is_static(subject, node.test):
        check_test(subject, node.test)
        return _picked(subject, node, torch)
    if is_steep(subject, [node]):
        return guarded(subject, node, test, torch, otherwise=otherwise)
    return subject.module.code(node)


def _check_kinds(subject: Subject, node: cst.IfExp) -> None:
    """A number becomes a tensor, which must not show."""
    if not any(isinstance(side, cst.IfExp) for side in (node.body, node.orelse)):
        check_alike(subject, node.body, node.orelse)
    sides = _leaves(node)
    python = [side for side in sides if is_static(subject, side)]
    for side in python:
        check_number(subject, side)
    module = subject.module
    above = module.parent(node)
    if not python or isinstance(above, cst.IfExp):
        return
    values = [kind_of(subject, side) for side in sides]
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    if isinstance(target, cst.Name):
        check_uses(subject, subject.function, subject.statement, target.value, values)
    elif not check_operand(subject, node, values):
        raise Refused("its value is a Python value, which would become a tensor")


def _leaves(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What it may come to, whichever way its conditions go."""
    if isinstance(node, cst.IfExp):
        return [*_leaves(node.body), *_leaves(node.orelse)]
    return [node]


WHERE_FOR_CONDITIONAL = Fix(
    id="where-for-conditional",
    title="use torch.where instead of the conditional expression",
    rules=RULES,
    order=41,
    kind="source",
    why="Both sides only compute values, so computing both and selecting one with "
    "`torch.where` gives the same result.",
    propose=asked_by_name(_for_conditional),
)


def _for_return(subject: Subject) -> Patch:
    module, branch = subject.module, branch_of(subject)
    if not returns_somewhere(module, branch):
        raise NotMeant("neither side returns")
    found = read_returning(module, branch)
    truth = read_test(subject, branch.test)
    other = cst.IndentedBlock(found.rest) if found.rest else branch.orelse
    sides = [side for side in (branch.body, other) if side is not None]
    states = gradient_note(subject, sides)
    edit = Edit(module)
    work = ReturnedValue(subject, torch_name(subject, edit))
    before = list(found.rest[:-1])
    if found.rest and len(found.rest[-1].body) > 1:  # type: ignore[attr-defined]
        raise Refused("the last `return` shares its line with other statements")
    test, head = truth.tensor, ""
    if before:
        if truth.static:
            raise Refused(f"`{truth.static}` in its condition is not a tensor")
        test = module.fresh_name("leaves")
        head = f"{test} = {truth.tensor}\n"
    for side in (found.then, found.other):
        if isinstance(side, ReturnedSide):
            work.check(side)
    early = work.kept(found, before)
    if early is not None:
        head += f"{early} = {work.code(found.then.value, test)}\n"
    value = work.picked(test, found, early)
    if value.count(test) > 1 and not before:
        test = module.fresh_name("taken")
        value = f"{work.picked(test, found, early)}"
        returned = edit.statements(f"{test} = {truth.tensor}\nreturn {value}")
    else:
        returned = edit.statements(f"return {value}")
    if before:
        replace_branch(edit, branch, edit.statements(head))
        edit.replace_statement(found.rest[-1], with_comments(module, found.rest[-1], returned))
        return Patch(edit.files(), states=states)
    if found.rest and not truth.static:
        lines = [each for each in found.rest[-1].leading_lines if each.comment]  # type: ignore[attr-defined]
        returned[0] = returned[0].with_changes(leading_lines=lines)
    elsewise = found.rest if found.rest else [cst.SimpleStatementLine([cst.Pass()])]
    made = under(edit, truth, returned, branch, [] if found.rest else elsewise)
    replace_branch(edit, branch, made)
    if found.rest and (not truth.static or truth.joined_by == "or"):
        edit.remove_statement(found.rest[-1])
    return Patch(edit.files(), states=states)


WHERE_FOR_RETURN = Fix(
    id="where-for-return",
    title="return one torch.where instead of two branches",
    rules=RULES,
    order=43,
    kind="source",
    why="Both branches only compute values, so computing both and returning one with "
    "`torch.where` gives the same result.",
    propose=asked_by_name(_for_return),
)

FIXES = (WHERE_FOR_IF, WHERE_FOR_CONDITIONAL, WHERE_FOR_RETURN)
