"""The package's source as syntax trees, each file parsed once in a process."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Every node, the module first."""
    # A million nodes and none of them garbage: to look through them takes longer than to parse.
    gc.disable()
    try:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        gc.freeze()
    finally:
        gc.enable()
    return nodes


def tree_of(path: Path) -> ast.Module:
    module = nodes_of(path)[0]
    assert isinstance(module, ast.Module)
    return module
