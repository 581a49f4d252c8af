"""Makes expressions smaller: one of their parts, a constant, a smaller number, a shorter string."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import libcst as cst

from compilescope.change.minify.deletion import smallest_number
from compilescope.change.minify.engine import Pass
from compilescope.change.minify.source.candidate import SourceCandidate
from compilescope.change.minify.source.edits import (
    Edit,
    Proposing,
    apply,
    edit,
    one_by_one,
    reparsed,
    replace,
    values,
    walk,
)

_CONSTANTS = ("0", "None", "1")


def _parts_of_expressions(tree: cst.Module) -> Iterator[list[Edit]]:
    """Replaces an expression by one of its parts, or by a plain constant."""
    acting = set(_acting(tree))
    for node in values(tree):
        bare = [edit(node, _without_parentheses)] if node.lpar else []
        if _is_constant(node):
            yield bare
            continue
        parts = [_grouped(part) for part in _parts(node)]
        texts = () if node in acting else _CONSTANTS
        constants = [cst.parse_expression(text) for text in texts]
        yield [*bare, *(replace(node, each) for each in (*parts, *constants))]


def _acting(tree: cst.Module) -> Iterator[cst.CSTNode]:
    """What is called, walked over, entered or asked for a part: a number never can be."""
    for node in walk(tree):
        if isinstance(node, cst.Call):
            yield node.func
        elif isinstance(node, (cst.Attribute, cst.Subscript)):
            yield node.value
        elif isinstance(node, (cst.For, cst.CompFor)):
            yield node.iter
        elif isinstance(node, cst.WithItem):
            yield node.item
        elif isinstance(node, cst.Decorator):
            yield node.decorator
        elif isinstance(node, cst.ClassDef):
            yield from (base.value for base in node.bases)


def _is_constant(node: cst.BaseExpression) -> bool:
    plain = (cst.BaseNumber, cst.BaseString, cst.Ellipsis)
    named = isinstance(node, cst.Name) and node.value in ("None", "True", "False")
    return (isinstance(node, plain) and not isinstance(node, cst.FormattedString)) or named


def _parts(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What the expression could be without its outermost operation, the shortest to read first."""
    if isinstance(node, cst.Call):
        given = [each.value for each in node.args if not each.star]
        receiver = [node.func.value] if isinstance(node.func, cst.Attribute) else []
        return [*receiver, *given]
    if isinstance(node, (cst.BinaryOperation, cst.BooleanOperation)):
        return [node.left, node.right]
    if isinstance(node, cst.Comparison):
        return [node.left, *(each.comparator for each in node.comparisons)]
    if isinstance(node, cst.IfExp):
        return [node.body, node.orelse, node.test]
    if isinstance(node, (cst.Attribute, cst.Subscript, cst.NamedExpr, cst.Yield)):
        return [node.value] if isinstance(node.value, cst.BaseExpression) else []
    if isinstance(node, (cst.UnaryOperation, cst.Await)):
        return [node.expression]
    if isinstance(node, (cst.List, cst.Tuple, cst.Set)):
        return [each.value for each in node.elements if isinstance(each, cst.Element)]
    if isinstance(node, (cst.ListComp, cst.GeneratorExp, cst.SetComp)):
        return [node.elt, node.for_in.iter, cst.List([])]
    if isinstance(node, (cst.Dict, cst.DictComp)):
        return [cst.Dict([])]
    if isinstance(node, cst.FormattedString):
        inner = [part for part in node.parts if isinstance(part, cst.FormattedStringExpression)]
        return [*(part.expression for part in inner), cst.SimpleString('""')]
    return [node.body] if isinstance(node, cst.Lambda) else []


def _grouped(node: cst.BaseExpression) -> cst.BaseExpression:
    """In parentheses where its new place may need them; needless ones go later."""
    if not isinstance(node, _OPEN) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _without_parentheses(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])


_OPEN = (
    cst.BinaryOperation,
    cst.BooleanOperation,
    cst.Comparison,
    cst.UnaryOperation,
    cst.IfExp,
    cst.Lambda,
    cst.NamedExpr,
    cst.Await,
    cst.Yield,
)


Done = list[Edit]


def _shrink_literals(present: SourceCandidate) -> Proposing:
    """Makes numbers smaller and strings shorter; equal numbers shrink together first."""
    tree = reparsed(present)
    done: Done = []
    numbers = [node for node in values(tree) if isinstance(node, cst.Integer)]
    left: dict[cst.Integer, int] = {}
    for value in sorted({_value(node) for node in numbers}, reverse=True):
        alike = [node for node in numbers if _value(node) == value]
        for group in [alike, *([node] for node in alike)] if len(alike) > 1 else [alike]:
            now = left.get(group[0], value)
            found = yield from smallest_number(now, _making(tree, done, group))
            if found < now:
                done.append(_all(group, str(found)))
                left.update(dict.fromkeys(group, found))
    for node in values(tree):
        for text in _simpler(node):
            candidate = apply(tree, [*done, _all([node], text)])
            if candidate is not None and (yield candidate):
                done.append(_all([node], text))
                break


def _making(
    tree: cst.Module, done: Done, group: Sequence[cst.CSTNode]
) -> Callable[[int], SourceCandidate | None]:
    return lambda number: apply(tree, [*done, _all(group, str(number))])


def _all(nodes: Sequence[cst.CSTNode], text: str) -> Edit:
    return tuple(change for node in nodes for change in replace(node, cst.parse_expression(text)))


def _value(node: cst.Integer) -> int:
    return int(node.evaluated_value)


def _simpler(node: cst.BaseExpression) -> list[str]:
    if isinstance(node, cst.Float):
        return [text for text in ("0.0", "1.0", "2.0") if len(text) <= len(node.value)]
    if isinstance(node, cst.ConcatenatedString):
        return ['""']
    if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str):
        value = node.evaluated_value
        return ['""', repr(value[:1])] if len(value) > 1 else ['""'] * bool(value)
    return []


PASSES = (
    Pass("expressions", 210, one_by_one(_parts_of_expressions)),
    Pass("literals", 220, _shrink_literals),
)
