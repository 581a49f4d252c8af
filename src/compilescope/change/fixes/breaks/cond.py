"""A branch on a tensor as `torch.cond`: a graph with two ways, of which one is run.

The branch is an `if`, two ways to return, or a conditional expression: a fix for each. Where both
sides may be computed, `where.py` answers first.
"""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.change.fixes.branches.branch import (
    RULES,
    asked_by_name,
    branch_of,
    conditional_of,
    replace_branch,
    torch_name,
    under,
)
from compilescope.change.fixes.branches.closures import (
    Closures,
    check_layers,
    check_strides,
    local_function,
    with_blank_lines,
)
from compilescope.change.fixes.branches.condition import Truth, read_test
from compilescope.change.fixes.branches.predication import gradient_note
from compilescope.change.fixes.branches.returns import (
    ReturnedSide,
    read_returning,
    returns_somewhere,
)
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import is_static
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit, replace_expression
from compilescope.knowledge.source.trees import cst


def _for_if(subject: Subject) -> Patch:
    branch = branch_of(subject)
    if returns_somewhere(subject.module, branch):
        raise NotMeant("one side returns")
    truth = read_test(subject, branch.test)
    edit = Edit(subject.module)
    work = _Branch(subject, edit, branch)
    results = work.closures.results(work.blocks(branch))
    work.closures.check_sides(work.blocks(branch), results)
    inside = work.statements(branch, truth, results)
    elsewise = [each for each in work.other(branch) if isinstance(each, cst.BaseStatement)]
    if truth.static and isinstance(branch.orelse, cst.If):
        raise Refused(f"`{truth.static}` in its condition is not a tensor, and an `elif` follows")
    replace_branch(edit, branch, under(edit, truth, inside, branch, elsewise))
    sides = [side for side in (branch.body, branch.orelse) if side is not None]
    return Patch(edit.files(), states=gradient_note(subject, sides, taken=True))


class _Ways:
    """Two functions and a call of one of them; an `elif` is the same inside the second one."""

    def __init__(self, subject: Subject, edit: Edit, branch: cst.If) -> None:
        self.subject = subject
        self.edit = edit
        self.closures = Closures(subject, subject.function, branch)
        self.torch = torch_name(subject, edit)
        self.level = 0

    def names(self) -> list[str]:
        """Of the next two functions."""
        self.level += 1
        number = f"_{self.level}" if self.level > 1 else ""
        names = ("when_true", "when_false")
        return [self.subject.module.fresh_name(f"{name}{number}") for name in names]

    def call(self, truth: Truth, names: list[str], given: list[str]) -> str:
        operands = ", ".join(given) + ("," if len(given) == 1 else "")
        return f"{self.torch}.cond({truth.tensor}, {names[0]}, {names[1]}, ({operands}))"

    def inner_test(self, test: cst.BaseExpression) -> Truth:
        truth = read_test(self.subject, test)
        if truth.static:
            raise Refused(f"`{truth.static}` in an inner condition is not a tensor")
        return truth


class _Branch(_Ways):
    def blocks(self, branch: cst.If) -> list[list[cst.CSTNode]]:
        """The bodies of all sides, those of each `elif` too."""
        found = [list(branch.body.body)]
        if isinstance(branch.orelse, cst.If):
            return [*found, *self.blocks(branch.orelse)]
        return [*found, self.other(branch)]

    def other(self, branch: cst.If) -> list[cst.CSTNode]:
        if isinstance(branch.orelse, cst.Else):
            return list(branch.orelse.body.body)
        return []

    def statements(
        self, branch: cst.If, truth: Truth, results: list[str]
    ) -> list[cst.BaseStatement]:
        names, module, closures = self.names(), self.subject.module, self.closures
        given = closures.given(self.blocks(branch))
        then = list(branch.body.body)
        closures.check(then)
        one = self._function(names[0], given, then, results)
        if isinstance(branch.orelse, cst.If):
            inner = branch.orelse
            if is_static(self.subject, inner.test):
                raise Refused(f"`{module.code(inner.test)}` in an inner condition is not a tensor")
            body = self.statements(inner, self.inner_test(inner.test), results)
            last = self._line(f"return {', '.join(results)}")
            two = local_function(names[1], given, body, last)
        else:
            other = self.other(branch)
            closures.check(other)
            two = self._function(names[1], given, other, results)
        call = self.call(truth, names, given)
        return with_blank_lines(one, two, self._line(f"{', '.join(results)} = {call}"))

    def _function(
        self, name: str, given: list[str], body: list[cst.CSTNode], results: list[str]
    ) -> cst.FunctionDef:
        last = self._line(f"return {self.closures.handed_out(body, results)}")
        return local_function(name, given, body, last)

    def _line(self, text: str) -> cst.BaseStatement:
        return self.edit.statements(text)[0]


COND_FOR_IF = Fix(
    id="cond-for-if",
    title="use torch.cond instead of the if",
    rules=RULES,
    order=60,
    kind="source",
    why="`torch.cond` puts both sides in the graph and runs the one the condition selects, so "
    "a side that is expensive or must not be computed is still skipped. It only accepts "
    "sides that change nothing and return tensors of the same shapes and dtypes.",
    propose=asked_by_name(_for_if),
)


def _for_return(subject: Subject) -> Patch:
    module, branch = subject.module, branch_of(subject)
    if not returns_somewhere(module, branch):
        raise NotMeant("neither side returns")
    truth = read_test(subject, branch.test)
    edit = Edit(module)
    work = _Returns(subject, edit, branch)
    made = work.statements(branch, truth)
    rest = read_returning(module, branch).rest
    if not truth.static or truth.joined_by == "or":
        for statement in rest:
            edit.remove_statement(statement)
    elsewise = branch.orelse.body.body if isinstance(branch.orelse, cst.Else) else ()
    lines = [each for each in elsewise if isinstance(each, cst.BaseStatement)]
    replace_branch(edit, branch, under(edit, truth, made, branch, lines))
    other = cst.IndentedBlock(rest) if rest else branch.orelse
    sides = [side for side in (branch.body, other) if side is not None]
    return Patch(edit.files(), states=gradient_note(subject, sides, taken=True))


class _Returns(_Ways):
    def statements(self, branch: cst.If, truth: Truth) -> list[cst.BaseStatement]:
        names, found = self.names(), read_returning(self.subject.module, branch)
        self.closures.check(found.then.block, returns=True)
        blocks: list[Sequence[cst.CSTNode]] = [found.then.block]
        if isinstance(found.other, ReturnedSide):
            self.closures.check(found.other.block, returns=True)
            self.closures.check_returned(found.then.value, found.other.value)
            blocks.append(found.other.block)
        check_layers(self.subject, blocks)
        check_strides(self.subject, blocks)
        given = self.closures.given(blocks)
        one = self._function(names[0], given, found.then)
        if isinstance(found.other, ReturnedSide):
            two = self._function(names[1], given, found.other)
        else:
            *body, last = self.statements(found.other, self.inner_test(found.other.test))
            two = local_function(names[1], given, body, last)
        returned = self.edit.statements(f"return {self.call(truth, names, given)}")
        return with_blank_lines(one, two, *returned)

    def _function(self, name: str, given: list[str], side: ReturnedSide) -> cst.FunctionDef:
        last = self.edit.statements(f"return {self.closures.returned(side.value)}")[0]
        return local_function(name, given, side.before(), last)


COND_FOR_RETURN = Fix(
    id="cond-for-return",
    title="return one torch.cond instead of two branches",
    rules=RULES,
    order=61,
    kind="source",
    why="`torch.cond` puts both branches in the graph and runs the one the condition selects. "
    "It only accepts branches that change nothing and return tensors of the same shapes "
    "and dtypes.",
    propose=asked_by_name(_for_return),
)


def _for_conditional(subject: Subject) -> Patch:
    whole = conditional_of(subject)
    edit = Edit(subject.module)
    made = edit.expression(_chosen(subject, whole, torch_name(subject, edit)))
    replace_expression(edit, whole, made)
    sides = [whole.body, whole.orelse]
    return Patch(edit.files(), states=gradient_note(subject, sides, taken=True))


def _chosen(subject: Subject, node: cst.IfExp, torch: str) -> str:
    truth = read_test(subject, node.test)
    if truth.static:
        raise Refused(f"`{truth.static}` in its condition is not a tensor")
    Closures(subject, subject.function, subject.statement).check_returned(node.body, node.orelse)
    check_layers(subject, [[node.body], [node.orelse]])
    check_strides(subject, [[node.body], [node.orelse]])
    sides = [_side(subject, side, torch) for side in (node.body, node.orelse)]
    return f"{torch}.cond({truth.tensor}, lambda: {sides[0]}, lambda: {sides[1]}, ())"


def _side(subject: Subject, node: cst.BaseExpression, torch: str) -> str:
    if isinstance(node, cst.IfExp) and not is_static(subject, node.test):
        return _chosen(subject, node, torch)
    if is_static(subject, node):
        raise Refused(f"`{subject.module.code(node)}` is a Python value, not a tensor")
    closures = Closures(subject, subject.function, subject.statement)
    closures.check([node])
    made = closures.returned(node)
    return f"({made})" if isinstance(node, cst.Tuple) else made


COND_FOR_CONDITIONAL = Fix(
    id="cond-for-conditional",
    title="use torch.cond instead of the conditional expression",
    rules=RULES,
    order=62,
    kind="source",
    why="`torch.cond` puts both sides in the graph and runs the one the condition selects.",
    propose=asked_by_name(_for_conditional),
)

FIXES = (COND_FOR_IF, COND_FOR_RETURN, COND_FOR_CONDITIONAL)
