"""Comments of a statement, above it and within it: none is lost when it is replaced."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst


def with_comments(
    module: SourceModule, old: cst.CSTNode, new: Sequence[cst.BaseStatement]
) -> list[cst.BaseStatement]:
    """`new` with the comments from inside `old` above it, but for those that it has itself and
    those that stand above `old` and stay anyway."""
    above = {id(line.comment) for line in getattr(old, "leading_lines", ())}
    kept = {each.value for made in new for each in comments_in(module, made)}
    lost = [
        each.value
        for each in comments_in(module, old)
        if id(each) not in above and each.value not in kept
    ]
    if not lost or not new:
        return list(new)
    lines = [cst.EmptyLine(indent=True, comment=cst.Comment(value)) for value in lost]
    head = new[0].with_changes(leading_lines=[*lines, *getattr(new[0], "leading_lines", ())])
    return [head, *new[1:]]


def comments_in(module: SourceModule, node: cst.CSTNode) -> list[cst.Comment]:
    return [each for each in module.walk(node) if isinstance(each, cst.Comment)]


def comments_above(statement: cst.CSTNode) -> list[cst.EmptyLine]:
    """Those above it, without the blank lines."""
    lines = getattr(statement, "leading_lines", ())
    return list(itertools.dropwhile(lambda line: line.comment is None, lines))
