"""What a version compiles elsewhere than the original does, put back for a replay.

A fix may take `@torch.compile` from a function and give it to the parts that the function calls.
The original's regions begin at the function, and it is there that calls of both are compared: so
the function is what is compiled again while they are, and Dynamo leaves its own frame alone. On the
same lines, so that what is told of them is still true.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TypeAlias

_FunctionNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
Moved: TypeAlias = "Mapping[str, list[str]]"
"""By the name of a function: what it was compiled by, as code."""


def moved_regions(old: str, new: str) -> dict[str, list[str]]:
    """Functions that the old text compiles by a decorator and the new one does not."""
    try:
        before, after = dict(_functions(ast.parse(old))), dict(_functions(ast.parse(new)))
    except (SyntaxError, ValueError):
        return {}
    return {
        name: found
        for name, node in before.items()
        if (found := [ast.unparse(each) for each in _compiling(node)])
        and name in after
        and not list(_compiling(after[name]))
    }


def put_back(text: str, path: str, moved: Moved) -> ast.Module:
    """The tree of the new text, with those functions compiled and the new ones not."""
    tree = ast.parse(text, path)
    for name, node in _functions(tree):
        again = moved.get(name)
        kept = [each for each in node.decorator_list if each not in list(_compiling(node))]
        if again:
            skip = "__import__('torch')._dynamo.decorators.skip"
            made = [ast.parse(code, mode="eval").body for code in (*again, skip)]
            for each in made:
                for part in ast.walk(each):
                    ast.copy_location(part, node)
            node.decorator_list = [*made[:-1], *kept, made[-1]]
        elif _is_called_by(tree, node, moved):
            node.decorator_list = kept
    return ast.fix_missing_locations(tree)


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, _FunctionNode]]:
    for node in ast.iter_child_nodes(tree):
        inner = prefix
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{node.name}", node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{prefix}{node.name}."
        yield from _functions(node, inner)


def _compiling(node: _FunctionNode) -> Iterator[ast.expr]:
    """As it is spelled: a version is the text of a fix of ours, which says it as the original."""
    for each in node.decorator_list:
        if "compile" in ast.unparse(each).replace("compiler", ""):
            yield each


def _is_called_by(tree: ast.Module, part: _FunctionNode, moved: Moved) -> bool:
    for name, node in _functions(tree):
        if name in moved:
            for each in ast.walk(node):
                called = getattr(each, "func", None)
                spelled = getattr(called, "attr", getattr(called, "id", None))
                if isinstance(each, ast.Call) and spelled == part.name:
                    return True
    return False
