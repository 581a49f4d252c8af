"""What several rules ask of the user's syntax tree: how a node is written, what it calls."""

from __future__ import annotations

import ast


def shown(node: ast.AST) -> str:
    """The code of a node on one line, cut where it grows too long to read."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else text[:89] + "…"


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
