"""A `for` with a `break` that a tensor decides: run to the end, values kept by `where`."""

from __future__ import annotations

from compilescope.fixes.branches.branch import RULES, branch_of, replace_branch, torch_name, under
from compilescope.fixes.branches.condition import read_test
from compilescope.fixes.branches.effects import Effect, parts_of, read_effect
from compilescope.fixes.branches.predication import check_pure, check_test, gradient_note
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.subject import Subject
from compilescope.fixes.values.kinds import check_like, check_one_kind, kind_of_fact
from compilescope.fixes.values.tensors import facts_of, is_static, is_tensor
from compilescope.source.flow import liveness
from compilescope.source.flow.purity import short
from compilescope.source.refusals import NotMeant, Refused
from compilescope.source.syntax.comments import with_comments
from compilescope.source.syntax.edit import Edit
from compilescope.source.syntax.snippets import number
from compilescope.source.trees import cst
from compilescope.texts import whole_number

_MOST_TURNS = 64
"""Chosen: Dynamo unrolls the loop, and every turn now runs and is part of the graph."""


def _propose(subject: Subject) -> Patch:
    module, branch = subject.module, branch_of(subject)
    loop = _loop(subject, branch)
    truth = read_test(subject, branch.test)
    check_test(subject, branch.test)
    edit = Edit(module)
    work = _Masking(subject, loop, torch_name(subject, edit), module.fresh_name("stopped"))
    after = False
    masked_before = ""
    for statement in loop.body.body:
        if statement is branch:
            after = True
            line = edit.statements(f"{work.stopped} = {work.stopped} | {truth.operand}")
            replace_branch(edit, branch, under(edit, truth, line, branch, []))
            continue
        lines, masked = work.lines(statement)
        assert isinstance(statement, cst.SimpleStatementLine)
        if masked and not after:
            masked_before = masked_before or masked
        if masked:
            made = edit.statements("\n".join(lines))
            edit.replace_statement(statement, with_comments(module, statement, made))
    start = f"{masked_before}.new_zeros((), dtype={work.torch}.bool)" if masked_before else "False"
    if truth.static and not masked_before:
        raise Refused(f"`{truth.static}` in its condition is not a tensor")
    edit.put_before(loop, f"{work.stopped} = {start}")
    return Patch(edit.files(), states=gradient_note(subject, [loop.body]))


def _loop(subject: Subject, branch: cst.If) -> cst.For:
    module = subject.module
    parts = list(parts_of(branch.body))
    if len(parts) != 1 or not isinstance(parts[0], cst.Break):
        raise NotMeant("it does not break out of a loop")
    if branch.orelse is not None:
        raise Refused("it has an `else`")
    loop = module.parent(module.block_of(branch))
    if not isinstance(loop, cst.For):
        raise NotMeant("it is not directly inside a `for`")
    if loop.orelse is not None:
        raise Refused("the loop has an `else`")
    module.block_of(loop)
    bounded = module.calls(loop.iter, "builtins.range") or isinstance(
        loop.iter, (cst.Tuple, cst.List)
    )
    if not bounded:
        raise Refused(f"the length of `{short(module, loop.iter)}` is unknown")
    if _turns(subject, loop.iter) > _MOST_TURNS:
        raise Refused(f"`{short(module, loop.iter)}` is too long to run to the end")
    for name in (each.value for each in liveness.targets(loop) if isinstance(each, cst.Name)):
        if liveness.is_read_later(module, subject.function, loop, name):
            raise Refused(f"`{name}` is read later and shows where the loop stopped")
    return loop


def _turns(subject: Subject, node: cst.BaseExpression) -> int:
    """How often a loop over it runs, as far as its largest number tells."""
    if isinstance(node, (cst.Tuple, cst.List)):
        return len(node.elements)
    assert isinstance(node, cst.Call)
    found = [0]
    for arg in node.args:
        value = number(arg.value)
        seen = [whole_number(fact.value) for fact in facts_of(subject, arg.value)]
        found += [each for each in seen if each is not None]
        found += [int(value)] if value is not None else []
    return max(found)


class _Masking:
    """What a turn sets stays as it was once the loop would have been left."""

    def __init__(self, subject: Subject, loop: cst.For, torch: str, stopped: str) -> None:
        self.subject = subject
        self.loop = loop
        self.torch = torch
        self.stopped = stopped

    def lines(self, statement: cst.CSTNode) -> tuple[list[str], str]:
        """The new lines, and the name of a tensor that they keep; none where nothing is kept."""
        if not isinstance(statement, cst.SimpleStatementLine):
            raise Refused(f"the loop does more than assign: `{self._head(statement)}`")
        lines, kept = [], ""
        for part in statement.body:
            for effect in read_effect(self.subject, self.subject.function, part):
                check_pure(self.subject, effect.nodes)
                line = self._line(effect)
                kept = kept or (effect.target if line != effect.line() else "")
                lines.append(line)
        return lines, kept

    def _head(self, statement: cst.CSTNode) -> str:
        return short(self.subject.module, statement).split(":")[0]

    def _line(self, effect: Effect) -> str:
        if effect.kind == "name" and not self._is_carried(effect.target):
            return effect.line()
        if effect.kind == "name":
            self._check(effect)
        value = f"{self.torch}.where({self.stopped}, {effect.target}, {effect.value})"
        return Effect(effect.kind, effect.target, value).line()

    def _is_carried(self, name: str) -> bool:
        """Read after the loop, or in a turn before it is set there."""
        module = self.subject.module
        if liveness.is_read_later(module, self.subject.function, self.loop, name):
            return True
        for statement in self.loop.body.body:
            if name in liveness.names_read(module, statement):
                return True
            if name in liveness.names_set(module, statement):
                return False
        return False

    def _check(self, effect: Effect) -> None:
        subject, module = self.subject, self.subject.module
        name = effect.target
        if not liveness.is_set_before(module, subject.function, self.loop, name):
            raise Refused(f"`{name}` has no value if the loop never runs")
        seen = subject.facts(name, module.line(self.loop))
        numbers = any(fact.kind not in ("tensor", "parameter") for fact in seen)
        value = effect.operand
        if value is not None and (is_static(subject, value) or is_tensor(subject, value) is False):
            numbers = True
        if numbers:
            raise Refused(f"`{name}` is a Python value, not a tensor")
        if value is not None:
            check_like(subject, seen, value)
            # Seen in a later turn, it is what an earlier one has made of it.
            within = subject.facts(name, module.line(value))
            for fact in within:
                check_one_kind([kind_of_fact(each) for each in (fact, *seen)])


FIX = Fix(
    id="masked-loop",
    title="run the loop to the end and keep values with torch.where instead of break",
    rules=RULES,
    order=50,
    kind="source",
    why="After the iteration where the loop would have stopped, each iteration keeps the "
    "values. All iterations are computed, which pays off if stopping early is rare or the "
    "iterations are cheap.",
    propose=_propose,
)
