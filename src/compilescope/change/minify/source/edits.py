"""What passes share on a LibCST tree: queries of its nodes, edits of it, and the two ways of trying
them, in runs or one by one.

An edit names a node of the tree that the pass began with. Edits within one another add up: the
inner ones come first, and the outer one sees what they made.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

import libcst as cst

from compilescope.change.minify.deletion import delete_runs
from compilescope.change.minify.source.candidate import SourceCandidate

Change = Callable[[Any], Any]
"""From a node, inner edits done, to what takes its place: a node or a sentinel of LibCST."""
Edit = tuple[tuple[cst.CSTNode, Change], ...]
"""Changes that only make sense together."""
Proposing = Generator[SourceCandidate, bool, None]


def edit(node: cst.CSTNode, change: Change) -> Edit:
    return ((node, change),)


def replace(node: cst.CSTNode, new: cst.CSTNode) -> Edit:
    # A clone each time: a tree with one node in two places cannot tell them apart.
    return ((node, lambda _: new.deep_clone()),)


def remove(node: cst.CSTNode) -> Edit:
    return ((node, lambda _: cst.RemoveFromParent()),)


def apply(module: cst.Module, edits: Iterable[Edit]) -> SourceCandidate | None:
    """The tree with these edits done; None where they cannot be."""
    changes: dict[cst.CSTNode, Change] = {}
    for each in edits:
        for node, change in each:
            before = changes.get(node)
            changes[node] = change if before is None else _both(before, change)
    try:
        changed = module.visit(_Changer(changes))
        if not isinstance(changed, cst.Module):
            return None
        candidate = SourceCandidate(changed)
        candidate.text()
    except _IMPOSSIBLE:
        return None  # What stood there cannot be replaced by that.
    return candidate


# LibCST checks some trees when they are made, and stumbles over others when it writes them.
_IMPOSSIBLE = (cst.CSTValidationError, TypeError, ValueError, AttributeError, RecursionError)


def _both(first: Change, second: Change) -> Change:
    def change(node: Any) -> Any:
        changed = first(node)
        return second(changed) if isinstance(changed, type(node)) else changed

    return change


class _Changer(cst.CSTTransformer):
    def __init__(self, changes: dict[cst.CSTNode, Change]) -> None:
        super().__init__()
        self._changes = changes

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        change = self._changes.get(original_node)
        changed = updated_node if change is None else change(updated_node)
        if changed is original_node:
            return changed
        if isinstance(changed, _LISTS):
            return without_last_comma(changed)
        return filled(changed) if isinstance(changed, _SUITES) else changed


_LISTS = (cst.Call, cst.Parameters, cst.ClassDef)
_SUITES = (cst.IndentedBlock, cst.SimpleStatementLine, cst.SimpleStatementSuite)


def filled(node: Any) -> Any:
    """A block that lost all its statements says `pass`; a line that did goes with them."""
    if node.body:
        return node
    if isinstance(node, cst.SimpleStatementLine):
        return cst.RemoveFromParent()
    if isinstance(node, cst.SimpleStatementSuite):
        return node.with_changes(body=[cst.Pass()])
    return node.with_changes(body=[cst.SimpleStatementLine([cst.Pass()])])


def without_last_comma(node: Any) -> Any:
    """After the last of a list went, the one before it still has its comma."""
    if isinstance(node, cst.Parameters):
        names = ("kwonly_params", "params")
        name = next((each for each in names if getattr(node, each)), "")
        if not name or node.star_kwarg is not None:
            return node
        if name == "params" and node.star_arg is not cst.MaybeSentinel.DEFAULT:
            return node
    else:
        name = "args" if isinstance(node, cst.Call) else "bases"
        if isinstance(node, cst.ClassDef) and not (node.bases or node.keywords):
            default = cst.MaybeSentinel.DEFAULT
            return node.with_changes(lpar=default, rpar=default)
    given = getattr(node, name)
    if not given or not isinstance(given[-1].comma, cst.Comma):
        return node
    last = given[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return node.with_changes(**{name: [*given[:-1], last]})


def in_runs(find: Callable[[cst.Module], Iterable[Sequence[Edit]]]) -> Callable[..., Proposing]:
    """A pass of edits that mostly go together: runs of them, within each list of `find`."""

    def propose(present: SourceCandidate) -> Proposing:
        tree = reparsed(present)
        done: list[Edit] = []

        def with_more(edits: Sequence[Edit]) -> Callable[[frozenset[Edit]], Any]:
            return lambda more: apply(tree, [*done, *(each for each in edits if each in more)])

        for edits in find(tree):
            gone = yield from delete_runs(edits, with_more(edits))
            done += [each for each in edits if each in gone]

    return propose


def one_by_one(find: Callable[[cst.Module], Iterable[Sequence[Edit]]]) -> Callable[..., Proposing]:
    """A pass of edits that exclude each other: the first of each list that is taken, then the next.

    After a taken edit the places are looked for anew, and the walk goes on at the same number.
    """

    def propose(present: SourceCandidate) -> Proposing:
        number = 0
        places = list(find(reparsed(present)))
        while number < len(places):
            for candidate in _smaller(present, places[number]):
                if (yield candidate):
                    present = candidate
                    places = list(find(reparsed(present)))
                    break
            else:
                number += 1

    return propose


def _smaller(present: SourceCandidate, edits: Sequence[Edit]) -> Iterable[SourceCandidate]:
    tree = present.module
    for each in edits:
        candidate = apply(tree, [each])
        if candidate is not None and candidate.size() < present.size():
            yield candidate


def reparsed(candidate: SourceCandidate) -> cst.Module:
    """The tree of its text.

    An edited tree may group otherwise than its text does, where an operator lost its parentheses,
    and it may hold one node twice. From here on it is the candidate's tree.
    """
    candidate.module = cst.parse_module(candidate.text())
    return candidate.module


_WHOLE = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.BaseNumber,
    cst.BaseString,
    cst.List,
    cst.Dict,
    cst.Set,
)


def substitute(node: Any, values: dict[str, cst.BaseExpression]) -> Any:
    """A copy of `node` with expressions in the place of variables."""
    copy = node.deep_clone()
    places = {name: values[name.value] for name in names_in(copy) if name.value in values}
    return copy.visit(_Substituting(places))


def closed(node: cst.BaseExpression) -> cst.BaseExpression:
    """In parentheses, unless it holds together without."""
    if isinstance(node, _WHOLE) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def is_simple(node: cst.BaseExpression) -> bool:
    """Can it stand in several places without being done several times?"""
    if isinstance(node, cst.Attribute):
        return is_simple(node.value)
    return isinstance(node, (cst.Name, cst.BaseNumber, cst.SimpleString))


class _Substituting(cst.CSTTransformer):
    def __init__(self, places: dict[cst.Name, cst.BaseExpression]) -> None:
        super().__init__()
        self._places = places

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        new = self._places.get(original_node)
        return updated_node if new is None else closed(new.deep_clone())


Statement = cst.BaseStatement | cst.BaseSmallStatement
Function = cst.FunctionDef


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """`node` and all below it, outer ones first, in the order of the text."""
    stack = [node]
    while stack:
        each = stack.pop()
        yield each
        stack.extend(reversed(each.children))


def statements_by_depth(tree: cst.Module) -> list[list[Statement]]:
    """What can be deleted as a whole: the outermost first; in each depth the last first."""
    levels: list[list[Statement]] = []

    def add(body: object, depth: int) -> None:
        if not isinstance(body, (list, tuple)):
            return
        for statement in body:
            if len(levels) <= depth:
                levels.append([])
            levels[depth].append(statement)
            inside(statement, depth)

    def inside(node: cst.CSTNode, depth: int) -> None:
        for child in node.children:
            if isinstance(child, (cst.IndentedBlock, cst.SimpleStatementSuite)):
                add(child.body, depth + 1)
            elif not isinstance(child, (cst.BaseExpression, cst.BaseSmallStatement)):
                inside(child, depth)
        if isinstance(node, cst.SimpleStatementLine) and len(node.body) > 1:
            add(node.body, depth + 1)

    add(tree.body, 0)
    return [level[::-1] for level in levels]


def values(tree: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Expressions that another expression could stand for, outer ones first."""
    stack: list[cst.CSTNode] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.BaseExpression):
            yield node
        stack.extend(reversed(list(_value_parts(node))))


def _value_parts(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Children that are, or hold, values: no targets, names of attributes, imports, annotations."""
    if isinstance(node, (cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal, cst.Annotation)):
        return
    skipped = _SKIPPED.get(type(node), ())
    for name in skipped and node.__dataclass_fields__:
        child = getattr(node, name)
        if name not in skipped and isinstance(child, cst.CSTNode):
            yield child
        elif name not in skipped and isinstance(child, (list, tuple)):
            yield from (each for each in child if isinstance(each, cst.CSTNode))
    if not skipped:
        yield from node.children


_SKIPPED: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.Attribute: ("attr",),
    cst.Arg: ("keyword",),
    cst.Param: ("name", "annotation"),
    cst.AssignTarget: ("target",),
    cst.AugAssign: ("target",),
    cst.AnnAssign: ("target", "annotation"),
    cst.For: ("target",),
    cst.CompFor: ("target",),
    cst.NamedExpr: ("target",),
    cst.FunctionDef: ("name", "returns"),
    cst.ClassDef: ("name",),
    cst.AsName: ("name",),
    cst.Del: ("target",),
    cst.NameItem: ("name",),
}


def is_docstring(statement: cst.CSTNode) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    only = statement.body[0]
    return isinstance(only, cst.Expr) and isinstance(
        only.value, (cst.SimpleString, cst.ConcatenatedString)
    )


def functions(tree: cst.CSTNode) -> list[Function]:
    return [node for node in walk(tree) if isinstance(node, cst.FunctionDef)]


def classes(tree: cst.CSTNode) -> list[cst.ClassDef]:
    return [node for node in walk(tree) if isinstance(node, cst.ClassDef)]


def calls(tree: cst.CSTNode) -> list[cst.Call]:
    return [node for node in walk(tree) if isinstance(node, cst.Call)]


def last_name(node: cst.CSTNode) -> str:
    """`c` of `a.b.c`, and of `c`; empty for what has no name."""
    if isinstance(node, cst.Name):
        return node.value
    return node.attr.value if isinstance(node, cst.Attribute) else ""


def names_in(node: cst.CSTNode) -> list[cst.Name]:
    """Names that are variables: not attributes, nor keywords of arguments."""
    found: list[cst.Name] = []
    stack = [node]
    while stack:
        each = stack.pop()
        if isinstance(each, cst.Name):
            found.append(each)
        elif isinstance(each, (cst.Attribute, cst.Arg)):
            stack.append(each.value)
        else:
            stack.extend(each.children)
    return found


def body_of(node: cst.BaseSuite) -> list[cst.BaseStatement]:
    """The statements of a block as lines of their own."""
    if isinstance(node, cst.SimpleStatementSuite):
        return [cst.SimpleStatementLine([each]) for each in node.body]
    return [each for each in node.body if isinstance(each, cst.BaseStatement)]
