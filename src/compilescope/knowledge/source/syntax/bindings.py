"""Which names a piece of a function binds, reads and leaves behind.

Reads are over-approximated (a name within a nested function counts), so a name that is not read
is really not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds, metadata

_COMPREHENSIONS = kinds(lambda: (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp))


def bound_names(nodes: Iterable[cst.CSTNode]) -> set[str]:
    """Names that running these binds in the scope that they stand in."""
    return {name for node in nodes for name in _bound(node)}


def _bound(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        yield node.name.value
        return
    if isinstance(node, cst.Lambda):
        return
    if isinstance(node, _COMPREHENSIONS):
        # Only a walrus binds outside of its comprehension.
        for inner in _within(node):
            if isinstance(inner, cst.NamedExpr):
                yield from _targets(inner.target)
        return
    yield from _bound_here(node)
    for child in node.children:
        yield from _bound(child)


def _bound_here(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr)):
        yield from _targets(node.target)
    elif isinstance(node, cst.AsName):
        yield from _targets(node.name)
    elif isinstance(node, cst.Del):
        yield from _targets(node.target)
    elif isinstance(node, (cst.MatchAs, cst.MatchStar)) and node.name is not None:
        yield node.name.value
    elif isinstance(node, cst.MatchMapping) and node.rest is not None:
        yield node.rest.value
    elif isinstance(node, cst.ImportAlias) and node.asname is None:
        yield node.evaluated_name.split(".")[0]


def _targets(target: cst.CSTNode) -> Iterator[str]:
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _targets(element.value)


def _within(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(current.children)


def parameters_of(function: cst.FunctionDef) -> list[str]:
    """Names, in order; `*args` and `**kwargs` too."""
    found = function.params
    every = [*found.posonly_params, *found.params, *found.kwonly_params]
    if isinstance(found.star_arg, cst.Param):
        every.append(found.star_arg)
    if found.star_kwarg is not None:
        every.append(found.star_kwarg)
    return [each.name.value for each in every]


def receiver_of(module: SourceModule, function: cst.FunctionDef) -> str:
    """What a method calls the object, or the class, that it is called on: `self`, as a rule. Empty
    for a function that is no method. One outside of a class that calls its first parameter so is
    taken for a method that a class is given later."""
    positional = [*function.params.posonly_params, *function.params.params]
    first = positional[0].name.value if positional else ""
    if any(module.code(each.decorator) == "staticmethod" for each in function.decorators):
        return ""
    return first if first in _HABITUAL or module.class_of(function) is not None else ""


_HABITUAL = ("self", "cls")


def is_receiver(module: SourceModule, node: cst.CSTNode) -> bool:
    """Is it the name of the object, or the class, that a method around it is called on? It need
    not be `self`."""
    if not isinstance(node, cst.Name):
        return False
    if node.value in _HABITUAL:
        return True
    for above in module.ancestors(node):
        if isinstance(above, cst.FunctionDef) and node.value in local_names(above):
            return receiver_of(module, above) == node.value
    return False


def statements_of(function: cst.FunctionDef) -> list[cst.BaseStatement]:
    """Of its own body. Raises `Refused` for `def f(x): return x`."""
    if not isinstance(function.body, cst.IndentedBlock):
        raise Refused("the function is defined on one line")
    return list(function.body.body)


@lru_cache(maxsize=1024)
def local_names(function: cst.FunctionDef) -> frozenset[str]:
    """Parameters, and what the body binds, but for `global` and `nonlocal` names."""
    found = set(parameters_of(function)) | bound_names(function.body.body)
    return frozenset(found - declared_names(function))


@lru_cache(maxsize=1024)
def declared_names(function: cst.FunctionDef) -> frozenset[str]:
    """Names that the function declares `global` or `nonlocal`."""
    found: set[str] = set()
    for node in _within(function.body):
        if isinstance(node, (cst.Global, cst.Nonlocal)):
            found |= {item.name.value for item in node.names}
    return frozenset(found)


def is_of_module(module: SourceModule, name: cst.Name) -> bool:
    """Does the name, where it stands, mean something of the module's top level, or a builtin?"""
    scope = module.scope(name)
    if scope is None:
        return False
    found = scope[name.value]
    if not found:
        return False
    return all(
        isinstance(each.scope, (metadata.GlobalScope, metadata.BuiltinScope)) for each in found
    )


def definitions_of(module: SourceModule, name: cst.Name) -> list[cst.CSTNode]:
    """The nodes that give the name, where it stands, its meaning: assignments, definitions,
    imports. Empty for a builtin."""
    scope = module.scope(name)
    found = scope[name.value] if scope is not None else ()
    return [each.node for each in found if isinstance(each, metadata.Assignment)]
