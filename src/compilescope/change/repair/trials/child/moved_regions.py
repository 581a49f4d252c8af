"""What a version compiles elsewhere than the original does, told of as a region for a replay.

A fix may take `torch.compile` from a function or a module and give it to the parts or to the
modules that it calls. The original's regions begin there, and it is there that calls of both are
compared: so it stays a region, which is not compiled as a whole. On the same lines, so that what is
told of them is still true.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias, TypeVar

_T = TypeVar("_T", bound=ast.AST)
_FunctionNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
Moved: TypeAlias = "list[list[str]]"
"""`["def", name]`: a function that a decorator compiled; `["call", function around, line]`: the
line binds what `torch.compile` was called for; `["method", function around, module]`: what
`module.compile()` compiled."""
_REGIONS = "compilescope.instrument.torchapi.regions"
_KEEP = f"__import__({_REGIONS!r}, fromlist=['keep_region']).keep_region"


def moved_regions(old: str, new: str) -> Moved:
    """What the old text compiles and the new one does not."""
    try:
        before, after = ast.parse(old), ast.parse(new)
    except (SyntaxError, ValueError):
        return []
    functions, now = dict(_functions(before)), dict(_functions(after))
    found = [
        ["def", name]
        for name, node in functions.items()
        if list(_compiling(node)) and name in now and not list(_compiling(now[name]))
    ]
    lines = {(around, ast.unparse(line)) for around, line in _lines(after)}
    # With other arguments it is still compiled.
    methods = {(around, _compiled_owner(line)) for around, line in _lines(after)}
    for around, line in _lines(before):
        if (around, ast.unparse(line)) in lines:
            continue
        match line:
            case ast.Assign(value=ast.Call(args=[given, *_]) as call) if _is_compile(call):
                bare = ast.unparse(ast.Assign(line.targets, given, lineno=0))
                if (around, bare) in lines:
                    found.append(["call", around, bare])
        owner = _compiled_owner(line)
        if owner and (around, owner) not in methods:
            found.append(["method", around, owner])
    return found


def _compiled_owner(line: ast.stmt) -> str:
    """`model` of `model.compile()`; empty where it is something else."""
    match line:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr="compile"))):
            return ast.unparse(owner)
    return ""


def put_back(text: str, path: str, moved: Moved) -> ast.Module:
    """The tree of the new text, with those called as regions."""
    tree = ast.parse(text, path)
    names = {name for kind, name, *_ in moved if kind == "def"}
    for name, node in _functions(tree):
        if name in names:
            node.decorator_list.insert(0, _located(ast.parse(_KEEP, mode="eval").body, node))
    for around, line in list(_lines(tree)):
        if isinstance(line, ast.Assign) and ["call", around, ast.unparse(line)] in moved:
            kept = ast.parse(f"{_KEEP}({ast.unparse(line.value)})", mode="eval").body
            line.value = _located(kept, line.value)
    for kind, *place in moved:
        if kind == "method":
            _keep_before(tree, *place)
    return ast.fix_missing_locations(tree)


def _keep_before(tree: ast.Module, around: str, owner: str) -> None:
    """Where what it holds is compiled instead."""
    for function, line in _lines(tree):
        if function == around and f"{owner}." in ast.unparse(line):
            kept = _located(ast.parse(f"{_KEEP}({owner})").body[0], line)
            for node in ast.walk(tree):
                body = getattr(node, "body", None)
                if isinstance(body, list) and line in body and "compile(" in ast.unparse(line):
                    body.insert(body.index(line), kept)
                    return


def _located(made: _T, like: ast.AST) -> _T:
    for part in ast.walk(made):
        ast.copy_location(part, like)
    return made


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, _FunctionNode]]:
    for node in ast.iter_child_nodes(tree):
        inner = prefix
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{node.name}", node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{prefix}{node.name}."
        yield from _functions(node, inner)


def _lines(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """Assignments, expressions and loops, each with the function around it."""
    for node in ast.iter_child_nodes(tree):
        inner = prefix
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{prefix}{node.name}."
        elif isinstance(node, (ast.Assign, ast.Expr, ast.For)):
            yield prefix, node
        yield from _lines(node, inner)


def _is_compile(call: ast.Call) -> bool:
    spelled = ast.unparse(call.func)
    return spelled.rpartition(".")[2] == "compile" and not spelled.startswith("re.")


def _compiling(node: _FunctionNode) -> Iterator[ast.expr]:
    """As it is spelled: a version is the text of a fix of ours, which says it as the original."""
    for each in node.decorator_list:
        if "compile" in ast.unparse(each).replace("compiler", ""):
            yield each
