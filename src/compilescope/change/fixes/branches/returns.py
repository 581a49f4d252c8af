"""An `if` whose sides end in `return`, with what is left of the function as its other side.

What it returns may be written as one `torch.where` of both values.
"""

from __future__ import annotations

from dataclasses import dataclass

from compilescope.change.fixes.branches.condition import read_test
from compilescope.change.fixes.branches.effects import (
    Small,
    check_not_the_argument,
    parts_of,
    read_effect,
)
from compilescope.change.fixes.branches.numbers import check_number
from compilescope.change.fixes.branches.predication import check_pure, check_test
from compilescope.change.fixes.branches.steep import guarded, is_steep
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.kinds import check_alike
from compilescope.change.fixes.values.tensors import is_static
from compilescope.knowledge.source.flow import liveness
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number, spread
from compilescope.knowledge.source.trees import cst


@dataclass(frozen=True)
class ReturnedSide:
    """What one side does before it returns, and what it returns."""

    parts: tuple[Small, ...]
    value: cst.BaseExpression
    block: tuple[cst.CSTNode, ...]
    """The statements themselves, the `return` among them."""

    def before(self) -> list[cst.CSTNode]:
        """The statements without the `return`, and without empty lines above the first."""
        found: list[cst.CSTNode] = list(self.block[:-1])
        last = self.block[-1]
        if isinstance(last, cst.SimpleStatementLine):
            found += last.body[:-1]
        if found and isinstance(found[0], cst.BaseStatement):
            lines = [each for each in found[0].leading_lines if each.comment]  # type: ignore[attr-defined]
            found[0] = found[0].with_changes(leading_lines=lines)
        return found


@dataclass(frozen=True)
class Returning:
    then: ReturnedSide
    other: ReturnedSide | cst.If
    """A further `if` of the same kind for an `elif`."""
    rest: tuple[cst.BaseStatement, ...]
    """Statements after the `if` that are its other side."""


def returns_somewhere(module: SourceModule, branch: cst.If) -> bool:
    """A `return` lies in it, but not in a function within."""
    return any(
        isinstance(each, cst.Return) and module.function_of(each) is module.function_of(branch)
        for each in module.walk(branch)
    )


def read_returning(module: SourceModule, branch: cst.If) -> Returning:
    """Raises `Refused` where a side does not end in `return` with a value."""
    _check_around(module, branch)
    then = read_side(tuple(parts_of(branch.body)), tuple(branch.body.body))
    if isinstance(branch.orelse, cst.If):
        return Returning(then, branch.orelse, _rest(module, branch))
    if isinstance(branch.orelse, cst.Else):
        body = branch.orelse.body
        return Returning(then, read_side(tuple(parts_of(body)), tuple(body.body)), ())
    rest = _rest(module, branch)
    parts: list[Small] = []
    for statement in rest:
        simple = isinstance(statement, cst.SimpleStatementLine)
        parts += statement.body if simple else [statement]  # type: ignore[attr-defined,list-item]
    return Returning(then, read_side(tuple(parts), rest), rest)


def read_side(parts: tuple[Small, ...], block: tuple[cst.CSTNode, ...]) -> ReturnedSide:
    last = parts[-1] if parts else None
    if not isinstance(last, cst.Return):
        raise Refused("one side returns, and the other continues without ending in `return`")
    if last.value is None or _is_none(last.value):
        raise Refused("one side returns nothing")
    return ReturnedSide(parts[:-1], last.value, block)


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _rest(module: SourceModule, branch: cst.If) -> tuple[cst.BaseStatement, ...]:
    top: cst.CSTNode = branch
    above = module.parent(top)
    while isinstance(above, cst.If) and above.orelse is top:
        top, above = above, module.parent(above)
    assert isinstance(top, cst.If)
    return tuple(module.following(top))


def _check_around(module: SourceModule, branch: cst.If) -> None:
    for above in module.ancestors(branch):
        if isinstance(above, (cst.For, cst.While)):
            raise Refused("it returns from inside a loop")
        if isinstance(above, (cst.Try, cst.TryStar)):
            raise Refused("it returns from inside a `try`")
        if isinstance(above, cst.With):
            raise Refused("it returns from inside a `with`")
        if isinstance(above, cst.FunctionDef):
            return


class ReturnedValue:
    """The sides of one `if` that returns, checked and joined."""

    def __init__(self, subject: Subject, torch: str) -> None:
        self.subject = subject
        self.torch = torch

    def check(self, side: ReturnedSide, *, inner: bool = False) -> None:
        """What a side does on its way must be nothing but values. `inner`: of an `elif`, whose
        test says nothing where the first one is taken."""
        subject, module = self.subject, self.subject.module
        check_pure(subject, (side.value,), guards=not inner)
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
        if isinstance(found.other, ReturnedSide) and not found.rest and found.other.parts:
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
        if isinstance(found.other, ReturnedSide):
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
            if (early or self.subject.module.code(a)) != code:
                self._check_kinds(a, other[number_] if other else None)
                left = early or self.code(a, test)
                right = self.code(other[number_], test, otherwise=True) if other else code
                code = f"{self.torch}.where({test}, {left}, {right})"
            made.append(code)
        return made, is_tuple

    def code(self, node: cst.BaseExpression, test: str, *, otherwise: bool = False) -> str:
        """Of a value that is computed whatever the test says."""
        if not is_steep(self.subject, [node]):
            return self.subject.module.code(node)
        return guarded(self.subject, node, test, self.torch, otherwise=otherwise)

    def _further(self, branch: cst.If) -> tuple[list[str], bool]:
        """An `elif`."""
        further = read_returning(self.subject.module, branch)
        check_test(self.subject, branch.test)
        for side in (further.then, further.other):
            if isinstance(side, ReturnedSide):
                self.check(side, inner=True)
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
