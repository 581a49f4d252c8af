"""Which modules of the user's own can be written into the program that imports them, and in order.

A module can be moved where that changes nothing. One that cannot stays an import, and so does all
that it imports: nothing may be there twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from compilescope.minify.source.own_modules import Finder, OwnImport, OwnModule
from compilescope.minify.source.scopes import (
    bindings,
    global_names,
    is_bound_elsewhere,
    only_attributes,
    rebound_names,
)
from compilescope.minify.source.weaving import Weaver


@dataclass(frozen=True)
class Flattened:
    """A program in one file, as far as that goes."""

    text: str
    inlined: tuple[str, ...] = ()
    left: dict[str, str] = field(default_factory=dict)
    """Own modules that it still imports, and why."""


def flatten(text: str, folders: tuple[str, ...], package: str = "") -> Flattened:
    """`package`: of the program itself, where it is run as a module of one."""
    finder = Finder(folders)
    main = OwnModule("__main__", cst.parse_module(text), package)
    order = _in_order(main, finder)
    left = _left_out(main, order)
    moved = [module for module in order if module.name not in left]
    if not moved:
        return Flattened(text, left=left)
    names = tuple(module.name for module in moved)
    return Flattened(Weaver(main, moved).write(), names, left)


def _in_order(main: OwnModule, finder: Finder) -> list[OwnModule]:
    """What is imported, before what imports it. A cycle is a problem of its members."""
    order: list[OwnModule] = []
    path: list[str] = []

    def visit(module: OwnModule) -> None:
        if module.name in path:
            for name in path[path.index(module.name) :]:
                member = finder.find(name)
                if member is not None:
                    member.problem = f"{name} is part of an import cycle"
            return
        if module in order:
            return
        path.append(module.name)
        finder.look_into(module)
        for each in module.imports:
            for name in _with_packages(each.module):
                inner = finder.find(name)
                # A package that imports its own parts has begun by then.
                if inner is not None and not (name in path and name != each.module):
                    visit(inner)
        path.pop()
        order.append(module)

    visit(main)
    return [module for module in order if module is not main]


def _with_packages(name: str) -> list[str]:
    """`a`, `a.b`, `a.b.c`: importing the last runs them all."""
    parts = name.split(".")
    return [".".join(parts[: n + 1]) for n in range(len(parts))]


def _left_out(main: OwnModule, order: list[OwnModule]) -> dict[str, str]:
    by_name = {module.name: module for module in order}
    left = {module.name: module.problem for module in order if module.problem}
    for importer in [main, *order]:
        for each in importer.imports:
            if each.module in by_name and each.module not in left:
                problem = _problem(each, importer, by_name[each.module])
                # An import within a block runs when it is reached, or never.
                problem = problem or (
                    ""
                    if each.on_top
                    else f"{importer.name} imports it inside a block that may not run"
                )
                if problem:
                    left[each.module] = problem
    waiting = list(left)
    while waiting:
        name = waiting.pop()
        for each in by_name[name].imports:
            if each.module in by_name and each.module not in left:
                left[each.module] = f"{name}, which stays a module, imports it"
                waiting.append(each.module)
    return left


def _problem(each: OwnImport, importer: OwnModule, module: OwnModule) -> str:
    names = global_names(module.tree)
    rebound = rebound_names(module.tree)
    for name, bound in each.names:
        if name in rebound or (name == "*" and rebound):
            return f"{module.name} reassigns a global that {importer.name} imports"
        if name != "*" and name not in names:
            return f"{importer.name} imports {name} from {module.name}, which does not define it"
        if name != "*" and bindings(importer.tree).get(bound, 0) > 1:
            return f"{importer.name} binds {bound} more than once"
    if not each.bound:
        return ""
    if is_bound_elsewhere(importer.tree, each.bound.split(".")[0]):
        return f"{importer.name} has other variables named {each.bound}"
    if not only_attributes(importer.tree, each.bound, names):
        return f"{importer.name} uses {each.bound} as an object"
    return ""
