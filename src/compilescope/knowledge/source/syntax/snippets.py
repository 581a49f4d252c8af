"""Small pieces of code: a number that is written in it, a long call written on several lines."""

from __future__ import annotations

from compilescope.knowledge.source.trees import cst

LONGEST = 84
"""Columns. Chosen: what stands in a function has little more room on a line of 100."""


def number(node: cst.CSTNode) -> int | float | None:
    """Of a literal, with its sign."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, (cst.Minus, cst.Plus)):
        inner = number(node.expression)
        return None if inner is None else -inner if isinstance(node.operator, cst.Minus) else inner
    if isinstance(node, (cst.Integer, cst.Float)):
        return node.evaluated_value
    return None


def spread(code: str, depth: int) -> str:
    """A call with each argument on a line of its own, where it is too long for one."""
    indent = "    " * depth
    if len(indent) + len(code) <= LONGEST:
        return code
    parsed = cst.parse_expression(code)
    if not isinstance(parsed, cst.Call) or not parsed.args:
        return code
    whole = cst.Module([])
    bare = [arg.with_changes(comma=cst.MaybeSentinel.DEFAULT) for arg in parsed.args]
    inside = "".join(f"{indent}    {whole.code_for_node(arg).strip()},\n" for arg in bare)
    return f"{whole.code_for_node(parsed.func)}(\n{inside}{indent})"
