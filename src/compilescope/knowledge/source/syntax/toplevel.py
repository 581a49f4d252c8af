"""The top level of a file: what stands there, and whether something may be moved to it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import bound_names, is_of_module
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst


def top_statement(module: SourceModule, node: cst.CSTNode) -> cst.BaseStatement:
    """The statement of the module's own body that a node is in."""
    for each in itertools.chain([node], module.ancestors(node)):
        if isinstance(module.parent(each), cst.Module) and isinstance(each, cst.BaseStatement):
            return each
    raise NotMeant("it is not part of a statement")


def top_names(module: SourceModule) -> set[str]:
    """Everything that the module's own body binds."""
    return bound_names(module.tree.body)


def bound_before(module: SourceModule, statement: cst.BaseStatement) -> set[str]:
    """What the module has bound when it comes to one of its statements."""
    body = itertools.takewhile(lambda each: each is not statement, module.tree.body)
    return bound_names(body)


def check_movable(
    module: SourceModule, nodes: Iterable[cst.CSTNode], place: cst.BaseStatement, what: str
) -> None:
    """Raises `Refused` where moving these before `place` would change what a name means: all that
    they read must be of the module, and what they read at once must be there by then."""
    nodes = list(nodes)
    inner = bound_names(nodes)
    later = top_names(module) - bound_before(module, place)
    for node in nodes:
        for name in _free(module, node):
            if name.value in inner or _is_bound_within(module, name, node):
                continue
            if not is_of_module(module, name):
                raise Refused(
                    f"{what} uses `{name.value}`, which is a local variable of the function"
                )
            if name.value in later and not _is_in_function(module, name, node):
                raise Refused(f"{what} uses `{name.value}`, which the file defines further down")


def _free(module: SourceModule, node: cst.CSTNode) -> list[cst.Name]:
    return [
        each for each in module.walk(node) if isinstance(each, cst.Name) and _is_read(module, each)
    ]


def _is_read(module: SourceModule, name: cst.Name) -> bool:
    above = module.parent(name)
    if isinstance(above, cst.Attribute):
        return above.value is name
    if isinstance(above, cst.Arg):
        return above.value is name
    if isinstance(above, (cst.Param, cst.FunctionDef, cst.ClassDef, cst.ImportAlias, cst.AsName)):
        return isinstance(above, cst.Param) and above.default is name
    return not isinstance(above, cst.AssignTarget) and not (
        isinstance(above, cst.AnnAssign) and above.target is name
    )


def _is_bound_within(module: SourceModule, name: cst.Name, node: cst.CSTNode) -> bool:
    """Is the name a parameter or variable of something inside the node itself?"""
    scope = module.scope(name)
    found = scope[name.value] if scope is not None else ()
    inside = {id(each) for each in module.walk(node)}
    places = [getattr(each.scope, "node", None) for each in found]
    return bool(places) and all(place is not None and id(place) in inside for place in places)


def _is_in_function(module: SourceModule, name: cst.CSTNode, within: cst.CSTNode) -> bool:
    """Read only when some function inside is called."""
    for above in module.ancestors(name):
        if above is within:
            return False
        if isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return True
    return False
