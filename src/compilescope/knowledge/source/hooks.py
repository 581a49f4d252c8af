"""Which functions a program registers as hooks: what they return takes the place of a value."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from compilescope.knowledge.source.outline import Function, Outline, dotted


def is_hook(function: Function, outlines: Iterable[Outline]) -> bool:
    """Is it given to `register_forward_hook` and the like: by its name, or by a call of the
    function around it, which returns it?"""
    registered = [call.args[0] for outline in outlines for call in outline.hooking if call.args]
    if not registered:
        return False  # As in most programs.
    makers = _makers(function, outlines)
    for given in registered:
        if _last(given) == function.name:
            return True
        if isinstance(given, ast.Call) and _last(given.func) in {*makers, "partial"}:
            inner = {function.name, *makers}
            if _last(given.func) != "partial" or any(_last(a) in inner for a in given.args):
                return True
    return False


def _makers(function: Function, outlines: Iterable[Outline]) -> set[str]:
    """Functions that define it and return it."""
    return {
        outer.name
        for outline in outlines
        for outer in outline.functions
        if outer.node is not function.node
        and any(node is function.node for node in ast.walk(outer.node))
        and any(
            isinstance(node, ast.Return)
            and node.value is not None
            and _last(node.value) == function.name
            for node in ast.walk(outer.node)
        )
    }


def _last(node: ast.AST) -> str:
    return dotted(node).rpartition(".")[2]
