"""Queries on a LibCST tree that passes share: statements by depth, expressions, calls, names."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

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
