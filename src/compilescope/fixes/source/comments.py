"""Comments of a statement that is about to be replaced, so that none is lost."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.module import SourceModule


def with_comments(
    module: SourceModule, old: cst.CSTNode, new: Sequence[cst.BaseStatement]
) -> list[cst.BaseStatement]:
    """`new` with the comments from inside `old` above it, but for those that it has itself and
    those that stand above `old` and stay anyway."""
    above = {id(line.comment) for line in getattr(old, "leading_lines", ())}
    kept = {each.value for made in new for each in _comments(module, made)}
    lost = [
        each.value
        for each in _comments(module, old)
        if id(each) not in above and each.value not in kept
    ]
    if not lost or not new:
        return list(new)
    lines = [cst.EmptyLine(indent=True, comment=cst.Comment(value)) for value in lost]
    head = new[0].with_changes(leading_lines=[*lines, *getattr(new[0], "leading_lines", ())])
    return [head, *new[1:]]


def replace_expression(edit: Edit, old: cst.BaseExpression, new: cst.BaseExpression) -> None:
    """One expression by another; comments within the old one go above its statement."""
    module = edit.module
    kept = {each.value for each in _comments(module, new)}
    lost = [each for each in _comments(module, old) if each.value not in kept]
    statement = module.statement_of(old)
    if not lost or not isinstance(statement, cst.SimpleStatementLine):
        edit.replace(old, new)
        return
    module.block_of(statement)
    made = statement.deep_replace(old, new)
    assert isinstance(made, cst.SimpleStatementLine)
    lines = [cst.EmptyLine(indent=True, comment=each) for each in lost]
    edit.replace_statement(statement, [made.with_changes(leading_lines=lines)])


def _comments(module: SourceModule, node: cst.CSTNode) -> list[cst.Comment]:
    return [each for each in module.walk(node) if isinstance(each, cst.Comment)]
