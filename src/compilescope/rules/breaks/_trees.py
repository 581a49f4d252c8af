"""Questions that several rules ask of the user's syntax tree."""

from __future__ import annotations

import ast
import copy


def shown(node: ast.AST) -> str:
    """The code of a node on one line, cut where it grows too long to read."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else text[:89] + "…"


def single_assignment(body: list[ast.stmt]) -> tuple[str, ast.expr] | None:
    """(name, value) of a block that assigns one variable and does nothing else."""
    if len(body) != 1:
        return None
    statement = body[0]
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return (target.id, statement.value) if isinstance(target, ast.Name) else None
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        name = statement.target.id
        left = ast.Name(name, ast.Load())
        return name, ast.BinOp(left, statement.op, copy.deepcopy(statement.value))
    return None


def single_return(body: list[ast.stmt]) -> ast.expr | None:
    if len(body) == 1 and isinstance(body[0], ast.Return):
        return body[0].value
    return None


def assigned_names(*blocks: list[ast.stmt]) -> list[str]:
    """Variables that the blocks assign, in order."""
    names: dict[str, None] = {}
    for block in blocks:
        for statement in block:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    names[node.id] = None
    return list(names)


def dotted(node: ast.AST | None) -> str:
    """`np.random.rand` of a name or attribute; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def called(node: ast.AST | None) -> str:
    """The dotted name of what a call calls."""
    return dotted(node.func) if isinstance(node, ast.Call) else ""
