"""Is what torch.compile is applied to one object, or several?

An application in a function may be run once: then nothing is shared with another object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilescope.change.fixes.compilation.own_files import own_modules
from compilescope.change.fixes.compilation.regions import Region
from compilescope.change.fixes.subject import Program
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_MOST_CALLERS = 4
"""Functions outwards. Chosen: `main` calls `build`, which makes a trainer, which compiles."""
MAKERS = ("__init__", "__new__", "__post_init__", "setup")
_FOR_EACH = ("map", "starmap")


def is_of_several(region: Region, program: Program) -> bool:
    """Does the source apply it again, in a loop or by several calls of the function around it?"""
    return _is_repeated(region.module, region.node, region.target, program, frozenset())


def _is_repeated(
    module: SourceModule,
    node: cst.CSTNode,
    target: cst.CSTNode | None,
    program: Program,
    seen: frozenset[cst.CSTNode],
) -> bool:
    turns: Any = (cst.For, cst.While, cst.BaseComp)
    function: cst.FunctionDef | None = None
    for above in module.ancestors(node):
        if isinstance(above, turns):
            return True
        if isinstance(above, cst.Lambda):
            return False
        if isinstance(above, cst.FunctionDef) and above is not target:
            function = above
            break
    if function is None or function in seen or len(seen) >= _MOST_CALLERS:
        return False
    sites = [each for each in _sites(module, function, program) if each[1] is not node]
    if len(sites) != 1:
        return len(sites) > 1
    where, call = sites[0]
    if isinstance(call, cst.Name):  # Given to `map`, or a decorator of one function.
        return isinstance(where.parent(call), cst.Arg)
    return _is_repeated(where, call, None, program, seen | {function})


def _sites(
    module: SourceModule, function: cst.FunctionDef, program: Program
) -> Iterator[tuple[SourceModule, cst.CSTNode]]:
    """Where a function is called, or what it is the constructor of is made; and where it is given
    to `map`, or decorates something."""
    name = function.name.value
    if name in MAKERS and (owner := module.around(function, cst.ClassDef)) is not None:
        names = _with_subclasses(owner.name.value, program)
    else:
        names = {name}
    for each in own_modules(program, *names):
        for node in each.walk():
            if isinstance(node, cst.Call):
                if _last(node.func) in names and not _is_super(node):
                    yield each, node
                elif _last(node.func) in _FOR_EACH and node.args:
                    first = node.args[0].value
                    if _last(first) in names:
                        yield each, first
            elif isinstance(node, cst.Decorator) and _last(node.decorator) in names:
                yield each, node.decorator


def _with_subclasses(name: str, program: Program) -> set[str]:
    found = {name}
    for _ in range(_MOST_CALLERS):
        more = {
            node.name.value
            for each in own_modules(program, *found)
            for node in each.walk()
            if isinstance(node, cst.ClassDef)
            and any(_last(base.value) in found for base in node.bases)
        }
        if more <= found:
            break
        found |= more
    return found


def _is_super(call: cst.Call) -> bool:
    """`super().__init__()` makes no other object."""
    function = call.func
    return (
        isinstance(function, cst.Attribute)
        and isinstance(function.value, cst.Call)
        and _last(function.value.func) == "super"
    )


def _last(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""
