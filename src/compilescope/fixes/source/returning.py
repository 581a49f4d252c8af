"""An `if` whose sides end in `return`, with what is left of the function as its other side."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from compilescope.fixes.patch import Refused
from compilescope.fixes.source.effects import Small, parts_of
from compilescope.fixes.source.module import SourceModule


@dataclass(frozen=True)
class Side:
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
    then: Side
    other: Side | cst.If
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


def read_side(parts: tuple[Small, ...], block: tuple[cst.CSTNode, ...]) -> Side:
    last = parts[-1] if parts else None
    if not isinstance(last, cst.Return):
        raise Refused("one side returns, and the other continues without ending in `return`")
    if last.value is None or _is_none(last.value):
        raise Refused("one side returns nothing")
    return Side(parts[:-1], last.value, block)


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
