"""Walks over a tree that make another of it.

Their base class is libcst's, so whoever uses one imports this module when it does: see
`source.trees`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence, Set

from compilescope.knowledge.source.syntax.comments import comments_above
from compilescope.knowledge.source.trees import cst


class Rewriter(cst.CSTTransformer):
    """Goes only where something changes: libcst copies every node that it goes through."""

    def __init__(
        self,
        within: Set[cst.CSTNode],
        replaced: Mapping[cst.CSTNode, cst.CSTNode | cst.RemovalSentinel],
        statements: Mapping[cst.CSTNode, Sequence[cst.BaseStatement]],
        before: Mapping[cst.CSTNode, Sequence[cst.BaseStatement]],
        after: Mapping[cst.CSTNode, Sequence[cst.BaseStatement]],
        definitions: Mapping[cst.CSTNode, Sequence[cst.BaseStatement]],
    ) -> None:
        """`within`: the nodes that change, and all that they lie in."""
        super().__init__()
        self._within = within
        self._replaced, self._statements = replaced, statements
        self._before, self._after, self._definitions = before, after, definitions

    def on_visit(self, node: cst.CSTNode) -> bool:
        """What holds no change stays as it is: a visit copies all that it sees."""
        return node in self._within

    def on_leave(self, original_node, updated_node):  # type: ignore[no-untyped-def]
        updated = super().on_leave(original_node, updated_node)
        if original_node in self._replaced:
            return self._replaced[original_node]
        if isinstance(original_node, (cst.IndentedBlock, cst.Module)):
            assert isinstance(updated, cst.CSTNode)
            return self._block(original_node, updated)
        return updated

    def _block(self, original: cst.IndentedBlock | cst.Module, updated: cst.CSTNode) -> cst.CSTNode:
        new = list(getattr(updated, "body", ()))
        top = isinstance(original, cst.Module)
        changed = [
            self._defined(old, self._around(old, now), 2 if top else 1)
            for old, now in zip(original.body, new, strict=True)
        ]
        if all(len(each) == 1 and each[0] is now for each, now in zip(changed, new, strict=True)):
            return updated
        body = [statement for each in changed for statement in each]
        if not body and isinstance(updated, cst.IndentedBlock):
            body = [cst.SimpleStatementLine([cst.Pass()])]
        return updated.with_changes(body=body)

    def _around(self, old: cst.CSTNode, now: cst.CSTNode) -> list[cst.CSTNode]:
        middle: list[cst.CSTNode] = list(self._statements.get(old, [now]))
        if isinstance(old, cst.SimpleStatementLine) and middle == [now]:
            assert isinstance(now, cst.SimpleStatementLine)
            middle = self._split(old, now)
        before = list(self._before.get(old, ()))
        if before and middle:
            # The comments above a statement stay above what is put before it.
            first = middle[0]
            leading = getattr(first, "leading_lines", ())
            if leading:
                own = getattr(before[0], "leading_lines", ())
                before[0] = before[0].with_changes(leading_lines=[*leading, *own])
                middle[0] = first.with_changes(leading_lines=())
        return [*before, *middle, *self._after.get(old, ())]

    def _split(
        self, old: cst.SimpleStatementLine, now: cst.SimpleStatementLine
    ) -> list[cst.CSTNode]:
        """`a = 1; b = f(a)`, with what is put around one of the two in lines of its own."""
        if not any(part in self._before or part in self._after for part in old.body):
            return [now]
        lines: list[cst.CSTNode] = []
        parts: list[cst.BaseSmallStatement] = []
        last = 0

        def end_line() -> None:
            nonlocal last
            if parts:
                last = len(lines)
                ending = parts.pop().with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
                lines.append(cst.SimpleStatementLine([*parts, ending]))
                parts.clear()

        for was, part in zip(old.body, now.body, strict=True):
            if was in self._before:
                end_line()
                lines += self._before[was]
            parts.append(part)
            if was in self._after:
                end_line()
                lines += self._after[was]
        end_line()
        own = getattr(lines[0], "leading_lines", ())
        lines[0] = lines[0].with_changes(leading_lines=[*now.leading_lines, *own])
        lines[last] = lines[last].with_changes(trailing_whitespace=now.trailing_whitespace)
        return lines

    def _defined(self, old: cst.CSTNode, now: list[cst.CSTNode], blank: int) -> list[cst.CSTNode]:
        made = self._definitions.get(old)
        if not made:
            return now
        leading = list(getattr(now[0], "leading_lines", ())) if now else []
        above = list(itertools.takewhile(lambda line: line.comment is None, leading))
        gap = [cst.EmptyLine(indent=False)] * blank
        defined: list[cst.CSTNode] = [
            each.with_changes(leading_lines=[*(gap if number else above), *comments_above(each)])
            for number, each in enumerate(made)
        ]
        rest = [now[0].with_changes(leading_lines=[*gap, *leading[len(above) :]])] if now else []
        return [*defined, *rest, *now[1:]]


class Unaugmented(cst.CSTTransformer):
    """`y += x` as `y = y + x`: inside, nothing is changed in place."""

    def leave_AugAssign(
        self, original_node: cst.AugAssign, updated_node: cst.AugAssign
    ) -> cst.BaseSmallStatement:
        target = updated_node.target
        kind = getattr(cst, type(updated_node.operator).__name__.removesuffix("Assign"), None)
        if kind is None or not isinstance(target, cst.Name):
            return updated_node
        right = updated_node.value
        loose = (cst.BinaryOperation, cst.Comparison, cst.IfExp, cst.BooleanOperation)
        if isinstance(right, loose) and not right.lpar:
            right = right.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        value = cst.BinaryOperation(left=target, operator=kind(), right=right)
        return cst.Assign(targets=[cst.AssignTarget(target)], value=value)


class Replacing(cst.CSTTransformer):
    """Puts other expressions in the place of some, wherever they lie."""

    def __init__(self, new: Mapping[cst.CSTNode, cst.BaseExpression]) -> None:
        super().__init__()
        self._new = new

    def on_leave(self, original_node, updated_node):  # type: ignore[no-untyped-def]
        made = self._new.get(original_node)
        return made if made is not None else super().on_leave(original_node, updated_node)


class WithArgument(cst.CSTTransformer):
    """Gives some calls one more argument."""

    def __init__(self, calls: list[cst.Call], argument: cst.Arg) -> None:
        super().__init__()
        self._calls, self._argument = calls, argument

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if not any(each is original_node for each in self._calls):
            return updated_node
        args = list(updated_node.args)
        if args and isinstance(args[-1].comma, cst.MaybeSentinel):
            space = cst.SimpleWhitespace(" ")
            args[-1] = args[-1].with_changes(comma=cst.Comma(whitespace_after=space))
        return updated_node.with_changes(args=[*args, self._argument])
