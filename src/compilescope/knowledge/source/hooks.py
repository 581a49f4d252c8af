"""Which functions a program registers as hooks: what they return takes the place of a value."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from compilescope.knowledge.source.outline import Function, Outline, dotted


def is_hook(function: Function, outlines: Iterable[Outline]) -> bool:
    """Is it given to `register_forward_hook` and the like: by its name, or by a call of the
    function around it, which returns it?"""
    makers = _makers(function, outlines)
    for outline in outlines:
        for call, _ in outline.calls:
            if not _registers(dotted(call.func) or getattr(call.func, "attr", "")):
                continue
            for given in call.args[:1]:
                if _last(given) == function.name:
                    return True
                if isinstance(given, ast.Call) and _last(given.func) in {*makers, "partial"}:
                    inner = {function.name, *makers}
                    if _last(given.func) != "partial" or any(_last(a) in inner for a in given.args):
                        return True
    return False


def _registers(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last.startswith("register_") and last.endswith("hook")


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
