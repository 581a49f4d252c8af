"""A truth that is gathered in steps: `bad = False`, then `bad = bad or x.isnan().any()` for each
layer, then `if bad:`.

Python asks each tensor on the way. As a tensor from the start, the name is asked where it is
tested alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compilescope.change.fixes.branches.condition import check_order, read_test
from compilescope.change.fixes.branches.named_truths import is_joined, operands, tests_of
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import facts_of
from compilescope.knowledge.source.flow.liveness import declared_elsewhere, targets
from compilescope.knowledge.source.refusals import NeedsRun, Refused
from compilescope.knowledge.source.syntax.bindings import parameters_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst


@dataclass(frozen=True)
class GatheredTruth:
    name: str
    joint: type[cst.BaseBooleanOp]
    start: cst.Name
    """`False` of `bad = False`, `True` where all have to hold."""
    asked: dict[cst.BaseExpression, cst.BaseExpression]
    """By what the name is set to in a step, what is asked there."""
    tests: tuple[tuple[int, int | None], ...]
    """Where a fix looks for them: line, and the column of one that is part of a line."""

    def write(self, subject: Subject, edit: Edit) -> None:
        """The same name as a tensor. Raises `Refused` where asking more than Python did shows."""
        sign = "|" if self.joint is cst.Or else "&"
        maker = "new_zeros" if self.joint is cst.Or else "new_ones"
        for whole, asked in self.asked.items():
            check_order(subject, [asked])
            truth = read_test(subject, asked)
            if truth.static:
                raise Refused(f"`{truth.static}` is not a tensor")
            edit.replace(whole, edit.expression(f"{self.name} {sign} {truth.operand}"))
        held, torch = self._beside(subject), edit.module_name("torch")
        edit.replace(self.start, edit.expression(f"{held}.{maker}((), dtype={torch}.bool)"))

    def _beside(self, subject: Subject) -> str:
        """A tensor that is there at the start, on the device of what is asked."""
        module, facts = subject.module, subject.program.facts
        if not facts.seen:
            raise NeedsRun("only a run can show on which device the tensors are")
        names = [
            each
            for asked in self.asked.values()
            for each in module.walk(asked)
            if isinstance(each, cst.Name)
        ]
        seen = [fact for each in names for fact in facts_of(subject, each)]
        devices = {fact.device for fact in seen if fact.kind in ("tensor", "parameter")}
        there = facts.all_at(subject.file, module.line(self.start))
        for name in dict.fromkeys([*(each.value for each in names), *sorted(there)]):
            held = there.get(name, ())
            tensors = held and all(fact.kind == "tensor" for fact in held)
            if name.isidentifier() and tensors and {fact.device for fact in held} == devices:
                return name
        raise Refused(f"no tensor is there yet where `{self.name}` begins")


def gathered_truth(subject: Subject) -> GatheredTruth | None:
    """Of the step that Dynamo stopped at; None where it is another thing. Raises `Refused` where
    the name is used for more than its truth."""
    module, line = subject.module, subject.statement
    step = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    function = module.function_of(line)
    if not isinstance(step, cst.Assign) or function is None:
        return None
    target = step.targets[0].target
    if not isinstance(target, cst.Name) or not isinstance(step.value, cst.BooleanOperation):
        return None
    name, joint = target.value, cst.Or if is_joined(step.value, cst.Or) else cst.And
    start: cst.Name | None = None
    asked: dict[cst.BaseExpression, cst.BaseExpression] = {}
    for value in _values(subject, function, name):
        if isinstance(value, cst.Name) and value.value == str(joint is cst.And):
            if start is not None:
                return None
            start = value
            continue
        rest = _asked(value, name, joint) if value is not None else None
        if value is None or rest is None:
            return None
        asked[value] = rest
    if start is None or not asked or not _comes_first(subject, start, list(asked)):
        return None
    if name in declared_elsewhere(module, function) or name in parameters_of(function):
        return None
    tests = tests_of(module, function, name, but=list(asked))
    return GatheredTruth(name, joint, start, asked, tests) if tests else None


def _values(
    subject: Subject, function: cst.FunctionDef, name: str
) -> Iterator[cst.BaseExpression | None]:
    """All that the name is set to; None for what is no plain assignment."""
    for each in subject.module.walk(function.body):
        if any(isinstance(t, cst.Name) and t.value == name for t in targets(each)):
            plain = isinstance(each, cst.Assign) and len(each.targets) == 1
            whole = plain and isinstance(each.targets[0].target, cst.Name)  # type: ignore[attr-defined]
            yield each.value if whole else None  # type: ignore[attr-defined]


def _asked(
    value: cst.BaseExpression, name: str, joint: type[cst.BaseBooleanOp]
) -> cst.BaseExpression | None:
    """`t` of `name or t`, of `t or name`."""
    parts = operands(value, joint)
    own = [each for each in parts if isinstance(each, cst.Name) and each.value == name]
    rest = [each for each in parts if each not in own]
    return rest[0] if len(own) == len(rest) == 1 else None


def _comes_first(subject: Subject, start: cst.CSTNode, steps: list[cst.BaseExpression]) -> bool:
    """Does it stand in a block around all the steps, before them?"""
    module = subject.module
    line = module.statement_of(start)
    after = {id(each) for each in module.following(line)}
    return all(any(id(above) in after for above in module.ancestors(step)) for step in steps)
