"""What of a module's top level its functions change.

Compiled code writes that only when a graph has ended, so that an operator of the graph still sees
what was there before.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.fixes.statements.outputs import output_of
from compilescope.source.flow.liveness import targets
from compilescope.source.syntax.bindings import bound_names, declared_names, is_of_module
from compilescope.source.syntax.module import SourceModule
from compilescope.source.trees import cst

_REBOUND = "rebound"


def is_rebound(module: SourceModule, name: cst.Name) -> bool:
    """A global that some function gives another value: `global step; step += 1`."""
    if not is_of_module(module, name):
        return False
    if _REBOUND not in module.kept:
        module.kept[_REBOUND] = [
            declared
            for each in _functions(module)
            if (names := declared_names(each))
            for declared in names & set(bound_names(each.body.body))
        ]
    return name.value in module.kept[_REBOUND]


def is_changed(module: SourceModule, name: cst.Name) -> bool:
    """A global object of which some function changes a part, or a method is called for its
    effect: `meter.n += 1`, `seen["x"] = x`, `history.append(x)`."""
    if not is_of_module(module, name) or not _is_variable(module, name):
        return False
    return any(
        _root(part) == name.value
        for function in _functions(module)
        for node in module.walk(function.body)
        for part in _changed_parts(module, node)
    )


def _changed_parts(module: SourceModule, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield from (
        each.value for each in targets(node) if isinstance(each, (cst.Attribute, cst.Subscript))
    )
    call = node.value if isinstance(node, cst.Expr) else None
    method = call.func if isinstance(call, cst.Call) else None
    if isinstance(method, cst.Attribute) and output_of(module, call) is None:
        yield method.value


def kind_of_global(module: SourceModule, name: str) -> str:
    """`int`, `float` or `str`, where all that the file gives it are such constants."""
    given: list[cst.CSTNode] = []
    for node in module.walk():
        if any(isinstance(each, cst.Name) and each.value == name for each in targets(node)):
            value = getattr(node, "value", None)
            given.append(value if isinstance(value, cst.CSTNode) else node)
    if given and all(isinstance(each, cst.Integer) for each in given):
        return "int"
    if given and all(isinstance(each, cst.Float) for each in given):
        return "float"
    return "str" if given and all(isinstance(each, cst.SimpleString) for each in given) else ""


def _functions(module: SourceModule) -> Iterator[cst.FunctionDef]:
    return (each for each in module.walk() if isinstance(each, cst.FunctionDef))


def _is_variable(module: SourceModule, name: cst.Name) -> bool:
    scope = module.scope(name)
    found = [getattr(each, "node", None) for each in scope[name.value]] if scope is not None else []
    fixed = (cst.Import, cst.ImportFrom, cst.FunctionDef, cst.ClassDef)
    return bool(found) and not any(each is None or isinstance(each, fixed) for each in found)


def _root(node: cst.CSTNode) -> str:
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""
