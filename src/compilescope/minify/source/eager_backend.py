"""The same program with Dynamo alone: `backend="eager"` at every torch.compile.

Also at every `model.compile()` that stands as a statement of its own. Breaks and recompiles are
Dynamo's, so they mostly stay, and each try takes a fraction of the time.
"""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst
import libcst.helpers as h

_DROPPED = ("backend", "mode", "options")


def with_eager_backend(text: str) -> str:
    """The same text where nothing is to be changed."""
    return cst.parse_module(text).visit(_Eager()).code


def is_eager(text: str) -> bool:
    """Does every compilation in it, if any, say `backend="eager"`?"""
    tree = ast.parse(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    compiles = [node for node in calls if ast.unparse(node.func) == "torch.compile"]
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    # As often named as called, or it is a decorator without arguments.
    if len(compiles) != sum(ast.unparse(node) == "torch.compile" for node in named):
        return False
    compiles += filter(None, map(_in_place, ast.walk(tree)))
    return all(any(map(_says_eager, node.keywords)) for node in compiles)


def _in_place(node: ast.AST) -> ast.Call | None:
    """The call of `model.compile()`, where the node is one."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return None
    called = node.value.func
    return (
        node.value
        if isinstance(called, ast.Attribute) and _is_method(ast.unparse(called))
        else None
    )


def _is_method(name: str) -> bool:
    """`model.compile`. The result of `re.compile` is what one calls that for."""
    owner, _, last = name.rpartition(".")
    return last == "compile" and owner not in ("torch", "re", "")


def _says_eager(keyword: ast.keyword) -> bool:
    value = keyword.value
    return keyword.arg == "backend" and isinstance(value, ast.Constant) and value.value == "eager"


def _is_compile(node: cst.CSTNode) -> bool:
    # Of a call it is the name of what is called: `torch.compile(f)(x)` compiles once.
    named = not isinstance(node, cst.Call)
    return named and h.get_full_name_for_node(node) == "torch.compile"


def _eager_argument() -> cst.Arg:
    return cst.Arg(
        cst.SimpleString('"eager"'),
        keyword=cst.Name("backend"),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )


def _eagerly(call: cst.Call) -> cst.Call:
    kept = [a for a in call.args if not (a.keyword and a.keyword.value in _DROPPED)]
    kept = [each.with_changes(comma=cst.MaybeSentinel.DEFAULT) for each in kept]
    return call.with_changes(args=[*kept, _eager_argument()])


class _Eager(cst.CSTTransformer):
    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> Any:
        if not _is_compile(original_node.func):
            return updated_node
        return _eagerly(updated_node)

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> Any:
        call = updated_node.value
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return updated_node
        # Of `Net().eval().compile()` there is no full name.
        owner = h.get_full_name_for_node(call.func.value) or "made"
        if not _is_method(f"{owner}.{call.func.attr.value}"):
            return updated_node
        return updated_node.with_changes(value=_eagerly(call))

    def leave_Decorator(self, original_node: cst.Decorator, updated_node: cst.Decorator) -> Any:
        if not _is_compile(original_node.decorator):
            return updated_node
        if isinstance(updated_node.decorator, cst.Call):
            return updated_node
        call = cst.Call(updated_node.decorator, [_eager_argument()])
        return updated_node.with_changes(decorator=call)
