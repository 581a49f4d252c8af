"""What a function returns where a tensor says which of two values: one `torch.where` of both."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.patch import Refused
from compilescope.fixes.source import liveness
from compilescope.fixes.source.callers import check_not_the_argument
from compilescope.fixes.source.effects import read_effect
from compilescope.fixes.source.kinds import check_alike
from compilescope.fixes.source.numbers import check_number
from compilescope.fixes.source.predication import check_pure, check_test
from compilescope.fixes.source.purity import short
from compilescope.fixes.source.returning import Returning, Side, read_returning
from compilescope.fixes.source.snippets import number, spread
from compilescope.fixes.source.truth import read_test
from compilescope.fixes.source.values import is_static
from compilescope.fixes.subject import Subject


class ReturnedValue:
    """The sides of one `if` that returns, checked and joined."""

    def __init__(self, subject: Subject, torch: str) -> None:
        self.subject = subject
        self.torch = torch

    def check(self, side: Side) -> None:
        """What a side does on its way must be nothing but values."""
        subject, module = self.subject, self.subject.module
        check_pure(subject, (side.value,))
        for part in side.parts:
            for effect in read_effect(subject, subject.function, part):
                if effect.kind != "name":
                    raise Refused(f"one side changes `{effect.target}` before it returns")
                check_pure(subject, effect.nodes)
                if effect.target in liveness.declared_elsewhere(module, subject.function):
                    raise Refused(f"`{effect.target}` belongs to another scope")

    def kept(self, found: Returning, before: list[cst.BaseStatement]) -> str | None:
        """A name for the early value, where the rest of the function sets what it is made of."""
        module = self.subject.module
        if found.then.parts:
            raise Refused("one side computes in steps before it returns")
        if isinstance(found.other, Side) and not found.rest and found.other.parts:
            raise Refused("one side computes in steps before it returns")
        read = liveness.names_read(module, found.then.value)
        changed = {name for each in before for name in liveness.names_set(module, each)}
        return module.fresh_name("early") if read & changed else None

    def picked(self, test: str, found: Returning, early: str | None = None) -> str:
        """The code of what is returned."""
        values, is_tuple = self._values(test, found, early)
        if not is_tuple:
            return spread(values[0], 0)
        return ", ".join(values) + ("," if len(values) == 1 else "")

    def _values(
        self, test: str, found: Returning, early: str | None = None
    ) -> tuple[list[str], bool]:
        one = _elements(found.then.value)
        if isinstance(found.other, Side):
            other = _elements(found.other.value)
            codes = [self.subject.module.code(each) for each in other]
            is_tuple = isinstance(found.other.value, cst.Tuple)
        else:
            other = []
            codes, is_tuple = self._further(found.other)
        alike = isinstance(found.then.value, cst.Tuple) == is_tuple and len(one) == len(codes)
        if not alike or (is_tuple and early is not None):
            raise Refused("the sides do not return tuples of the same length")
        made = []
        for number_, (a, code) in enumerate(zip(one, codes, strict=True)):
            left = early or self.subject.module.code(a)
            if left != code:
                self._check_kinds(a, other[number_] if other else None)
                code = f"{self.torch}.where({test}, {left}, {code})"
            made.append(code)
        return made, is_tuple

    def _further(self, branch: cst.If) -> tuple[list[str], bool]:
        """An `elif`."""
        further = read_returning(self.subject.module, branch)
        check_test(self.subject, branch.test)
        for side in (further.then, further.other):
            if isinstance(side, Side):
                self.check(side)
        self.kept(further, [])
        truth = read_test(self.subject, branch.test)
        if truth.static:
            raise Refused(f"`{truth.static}` in an inner condition is not a tensor")
        return self._values(truth.tensor, further)

    def _check_kinds(self, one: cst.BaseExpression, other: cst.BaseExpression | None) -> None:
        sides = [side for side in (one, other) if side is not None]
        if other is not None:
            check_alike(self.subject, one, other)
        for side in sides:
            check_not_the_argument(self.subject, self.subject.module.code(side))
        python = [side for side in sides if is_static(self.subject, side)]
        for side in python:
            check_number(self.subject, side)
            shown = short(self.subject.module, side)
            if len(python) == len(sides) or number(side) is None:
                raise Refused(f"it returns `{shown}`, a Python value, not a tensor")


def _elements(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.Tuple):
        return [element.value for element in node.elements]
    return [node]
