"""What names of a module are bound by, and how they are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import libcst as cst
import libcst.helpers as h
import libcst.metadata as md

from compilescope.minify.source.nodes import walk


def scopes(tree: cst.Module) -> list[md.Scope]:
    wrapper = cst.MetadataWrapper(tree, unsafe_skip_copy=True)
    found = wrapper.resolve(md.ScopeProvider).values()
    return [scope for scope in dict.fromkeys(found) if scope is not None]


def global_bindings(tree: cst.Module) -> Iterator[md.BaseAssignment]:
    for scope in scopes(tree):
        if isinstance(scope, md.GlobalScope):
            yield from scope.assignments


def global_names(tree: cst.Module) -> set[str]:
    """The names that the module binds."""
    return {each.name.split(".")[0] for each in global_bindings(tree)}


def local_names(tree: cst.Module) -> set[str]:
    """The names that functions, classes and comprehensions bind for themselves."""
    return {
        each.name
        for scope in scopes(tree)
        if not isinstance(scope, md.GlobalScope)
        for each in scope.assignments
        if isinstance(each, md.Assignment)
    }


def bindings(tree: cst.Module) -> Counter[str]:
    """Global names, and how often each is bound."""
    return Counter(each.name for each in global_bindings(tree))


def rebound_names(tree: cst.Module) -> set[str]:
    """Names that a function declares global."""
    return {
        item.name.value
        for node in walk(tree)
        if isinstance(node, cst.Global)
        for item in node.names
    }


def is_bound_elsewhere(tree: cst.Module, name: str) -> bool:
    """Is there anything of this name that no import has made?"""
    return any(
        each.name == name and not isinstance(each, md.ImportAssignment)
        for scope in scopes(tree)
        for each in scope.assignments
        if isinstance(each, md.Assignment)
    )


def only_attributes(tree: cst.Module, bound: str, names: set[str]) -> bool:
    """Is the module only ever asked for names that it defines, and never assigned to?"""
    assigned = {
        h.get_full_name_for_node(node.target)
        for node in walk(tree)
        if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign))
    }
    if any(name and name.startswith(f"{bound}.") for name in assigned):
        return False
    good = sum(
        isinstance(node, cst.Attribute)
        and h.get_full_name_for_node(node.value) == bound
        and node.attr.value in names
        for node in walk(tree)
    )
    return good == _uses(tree, bound)


def _uses(tree: cst.Module, bound: str) -> int:
    """How often the dotted name stands there, outside imports."""
    nodes = list(walk(tree))
    imports = [node for node in nodes if isinstance(node, (cst.Import, cst.ImportFrom))]
    passed = {inner for node in imports for inner in walk(node)}
    passed |= {node.attr for node in nodes if isinstance(node, cst.Attribute)}
    passed |= {node.keyword for node in nodes if isinstance(node, cst.Arg) and node.keyword}
    return sum(
        isinstance(node, (cst.Attribute, cst.Name))
        and node not in passed
        and h.get_full_name_for_node(node) == bound
        for node in nodes
    )


def import_words(tree: cst.Module) -> dict[str, set[str]]:
    """Global name -> what it is: the thing imported, or, for all else, the empty word."""
    found: dict[str, set[str]] = {}
    for each in global_bindings(tree):
        words = {""}
        if isinstance(each, md.ImportAssignment):
            words = {name.name for name in each.get_qualified_names_for(each.name)}
        found.setdefault(each.name.split(".")[0], set()).update(words)
    return found
