"""A `for` with a `break` that a tensor decides: run to the end, values kept by `where`."""

from __future__ import annotations

from functools import cached_property

from compilescope.base.texts import whole_number
from compilescope.change.fixes.branches.branch import (
    RULES,
    asked_by_name,
    branch_of,
    replace_branch,
    torch_name,
    under,
    with_files,
)
from compilescope.change.fixes.branches.condition import read_test
from compilescope.change.fixes.branches.effects import Effect, parts_of, read_effect
from compilescope.change.fixes.branches.layers import calls_of_layers
from compilescope.change.fixes.branches.predication import (
    ZEROS,
    check_pure,
    check_test,
    gradient_note,
)
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.kinds import check_like, check_one_kind, kind_of_fact
from compilescope.change.fixes.values.tensors import facts_of, is_static, is_tensor
from compilescope.knowledge.source.flow import liveness
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.comments import with_comments
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst

_WITH_LENGTH = frozenset(
    {"builtins.list", "builtins.tuple", "builtins.dict"}
    | {f"torch.nn.modules.container.{name}" for name in ("ModuleList", "Sequential")}
)
_MOST_TURNS = 64
"""Chosen: Dynamo unrolls the loop, and every turn now runs and is part of the graph."""


def _propose(subject: Subject) -> Patch:
    subject = _with_break(subject)
    module, branch = subject.module, branch_of(subject)
    loop = _loop(subject, branch)
    truth = read_test(subject, branch.test)
    check_test(subject, branch.test)
    edit = Edit(module)
    work = _Masking(subject, loop, branch, torch_name(subject, edit))
    masked_before = ""
    for statement in loop.body.body:
        if statement is branch:
            line = edit.statements(f"{work.stopped} = {work.stopped} | {truth.operand}")
            replace_branch(edit, branch, under(edit, truth, line, branch, []))
            work.is_past = True
            continue
        lines, masked = work.lines(statement)
        assert isinstance(statement, cst.SimpleStatementLine)
        if masked and not work.is_past:
            masked_before = masked_before or masked
        if masked:
            made = edit.statements("\n".join(lines))
            edit.replace_statement(statement, with_comments(module, statement, made))
    start = f"{masked_before}.new_zeros((), dtype={work.torch}.bool)"
    if not masked_before or work.starts_unset:
        start = "False"
    if truth.static and start == "False":
        raise Refused(f"`{truth.static}` in its condition is not a tensor")
    edit.put_before(loop, f"{work.stopped} = {start}")
    states = gradient_note(subject, [loop.body]) if work.is_graded else ""
    if work.calls_layers and work.is_graded and ZEROS not in states:
        states = f"{states} {ZEROS}".strip()
    return Patch(edit.files(), states=states)


def _with_break(subject: Subject) -> Subject:
    """Where the branch returns what is returned right after the loop too, it only leaves the loop:
    the program with a `break` there."""
    module, branch = subject.module, branch_of(subject)
    parts = list(parts_of(branch.body))
    loop = module.parent(module.block_of(branch))
    if len(parts) != 1 or not isinstance(parts[0], cst.Return) or not isinstance(loop, cst.For):
        return subject
    after = liveness.next_statement(module, loop)
    if not isinstance(after, cst.SimpleStatementLine):
        return subject
    last = after.body[0]
    if not isinstance(last, cst.Return) or module.parent(after) is not module.block_of(loop):
        return subject
    if module.code(last).strip() != module.code(parts[0]).strip():
        raise Refused("it returns something else from inside the loop than after it")
    edit = Edit(module)
    edit.replace(parts[0], cst.Break())
    files = edit.files()
    if files[module.path].count("\n") != module.text.count("\n"):
        raise Refused("it returns from inside a loop, on several lines")
    return with_files(subject, {**subject.program.files, **files}, subject.program.facts)


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
    _check_bounded(subject, loop.iter)
    if _turns(subject, loop.iter) > _MOST_TURNS:
        raise Refused(f"`{short(module, loop.iter)}` is too long to run to the end")
    for name in (each.value for each in liveness.targets(loop) if isinstance(each, cst.Name)):
        if liveness.is_read_later(module, subject.function, loop, name):
            raise Refused(f"`{name}` is read later and shows where the loop stopped")
    return loop


def _check_bounded(subject: Subject, node: cst.BaseExpression) -> None:
    """Raises `Refused` unless Dynamo knows how often a loop over it runs."""
    module = subject.module
    if isinstance(node, (cst.Tuple, cst.List)) or module.calls(node, "builtins.range"):
        return None
    seen = facts_of(subject, node)
    if seen and all(fact.type in _WITH_LENGTH for fact in seen):
        return None
    held = [arg.value for arg in node.args] if isinstance(node, cst.Call) else []
    if held and module.calls(node, "builtins.enumerate", "builtins.reversed"):
        return _check_bounded(subject, held[0])
    if held and module.calls(node, "builtins.zip"):
        for each in held:
            _check_bounded(subject, each)
        return None
    shown = short(module, node)
    if not seen and not subject.program.facts.seen:
        raise NeedsRun(f"the source does not show the length of `{shown}`")
    raise Refused(f"the length of `{shown}` is unknown")


def _turns(subject: Subject, node: cst.BaseExpression) -> int:
    """How often a loop over it runs, as far as its largest number tells."""
    if isinstance(node, (cst.Tuple, cst.List)):
        return len(node.elements)
    if not isinstance(node, cst.Call):
        return 0  # As many as there are, which Dynamo went through as well.
    found = [0, *(_turns(subject, arg.value) for arg in node.args if _is_call(arg.value))]
    for arg in node.args:
        value = number(arg.value)
        seen = [whole_number(fact.value) for fact in facts_of(subject, arg.value)]
        found += [each for each in seen if each is not None]
        found += [int(value)] if value is not None else []
    return max(found)


def _is_call(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.Call, cst.Tuple, cst.List))


class _Masking:
    """What a turn sets stays as it was once the loop would have been left."""

    def __init__(self, subject: Subject, loop: cst.For, branch: cst.If, torch: str) -> None:
        self.subject = subject
        self.loop = loop
        self.branch = branch
        self.torch = torch
        self.stopped = subject.module.fresh_name("stopped")
        self.is_past = False
        """Are the lines after the `break` meant?"""
        self.calls_layers = False
        self.starts_unset = any(
            not self._is_set_before(name) and self._is_read_after(name)
            for name in liveness.names_set(subject.module, loop.body)
        )
        """Does the first turn give a name its first value?"""

    @cached_property
    def is_graded(self) -> bool:
        """May a gradient come back through the loop? False where a run has shown what it sets."""
        names = liveness.names_set(self.subject.module, self.loop.body)
        seen = [self.subject.facts(name, self.subject.module.line(self.branch)) for name in names]
        shown = bool(self.subject.program.facts.seen) and any(seen)
        return not shown or any(fact.requires_grad for facts in seen for fact in facts)

    def lines(self, statement: cst.CSTNode) -> tuple[list[str], str]:
        """The new lines, and the name of a tensor that they keep; none where nothing is kept."""
        if not isinstance(statement, cst.SimpleStatementLine):
            raise Refused(f"the loop does more than assign: `{self._head(statement)}`")
        lines, kept = [], ""
        for part in statement.body:
            for effect in read_effect(self.subject, self.subject.function, part):
                layers = [x for node in effect.nodes for x in calls_of_layers(self.subject, node)]
                self.calls_layers |= bool(layers)
                check_pure(self.subject, effect.nodes, layers)
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
        if self.starts_unset and not self.is_past:
            value = f"{effect.value} if {self.stopped} is False else {value}"
        return Effect(effect.kind, effect.target, value).line()

    def _is_set_before(self, name: str) -> bool:
        return liveness.is_set_before(self.subject.module, self.subject.function, self.loop, name)

    def _is_read_after(self, name: str) -> bool:
        return liveness.is_read_later(self.subject.module, self.subject.function, self.loop, name)

    def _is_carried(self, name: str) -> bool:
        """Read after the loop; or in a turn before it is set there, and what comes back through
        the turns after the last would be a gradient."""
        module = self.subject.module
        if self._is_read_after(name):
            return True
        if not self.is_graded:
            return False
        for statement in self.loop.body.body:
            if name in liveness.names_read(module, statement):
                return True
            if name in liveness.names_set(module, statement):
                return False
        return False

    def _check(self, effect: Effect) -> None:
        subject, module = self.subject, self.subject.module
        name = effect.target
        if self.is_past and not self._is_set_before(name):
            raise Refused(f"`{name}` has no value if the loop stops at once")
        seen = subject.facts(name, module.line(self.loop))
        numbers = any(fact.kind not in ("tensor", "parameter") for fact in seen)
        value = effect.operand
        if value is not None and (is_static(subject, value) or is_tensor(subject, value) is False):
            numbers = True
        if numbers:
            raise Refused(f"`{name}` is a Python value, not a tensor")
        if value is not None:
            made = subject.facts(name, module.line(self.branch)) if not self.is_past else ()
            if made and seen:
                check_one_kind([kind_of_fact(each) for each in (*made, *seen)])
            else:
                check_like(subject, seen, value)
            # Seen in a later turn, it is what an earlier one has made of it.
            within = subject.facts(name, module.line(value))
            for fact in within:
                check_one_kind([kind_of_fact(each) for each in (fact, *(seen or within))])


FIX = Fix(
    id="masked-loop",
    title="run the loop to the end and keep values with torch.where instead of break",
    rules=RULES,
    order=50,
    kind="source",
    why="After the iteration where the loop would have stopped, each iteration keeps the "
    "values. All iterations are computed, which pays off if stopping early is rare or the "
    "iterations are cheap.",
    propose=asked_by_name(_propose),
)
