"""Statements of a function as a local function of their own, nothing in it changed in place."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst


class _Unaugmented(cst.CSTTransformer):
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


def local_function(
    name: str,
    parameters: Sequence[str],
    body: Sequence[cst.CSTNode],
    last: cst.BaseStatement,
) -> cst.FunctionDef:
    """`body` may be the statements of a block, or those of one line."""
    lines: list[cst.BaseStatement] = []
    for node in body:
        if isinstance(node, cst.BaseSmallStatement):
            bare = node.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
            node = cst.SimpleStatementLine([bare])
        changed = node.visit(_Unaugmented())
        assert isinstance(changed, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
        if not _is_pass(changed):
            lines.append(changed)
    return cst.FunctionDef(
        name=cst.Name(name),
        params=cst.Parameters([cst.Param(cst.Name(each)) for each in parameters]),
        body=cst.IndentedBlock([*lines, last]),
        leading_lines=(),
    )


def _is_pass(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and all(
        isinstance(part, cst.Pass) for part in node.body
    )
