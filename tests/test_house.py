"""The house, as one walks through it: no circles, one name for one thing, nothing out of reach."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from parsed_source import nodes_of, tree_of
from test_architecture import PACKAGE, ROOT, sources


@cache
def _modules() -> dict[str, Path]:
    """Every module of ours that is imported by name; programs that are data are not."""
    found = {}
    for path in sources():
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found[".".join(parts)] = path
    return found


def _imports(path: Path, modules: Collection[str]) -> set[str]:
    """Ours that a module imports, wherever it does: also inside functions, and for types."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                found.add(inner if inner in modules else node.module)
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found & set(modules)


@cache
def _graph() -> dict[str, set[str]]:
    modules = _modules()
    return {name: _imports(path, modules) - {name} for name, path in modules.items()}


def test_no_modules_import_each_other() -> None:
    """Not even for types, nor inside a function: what needs each other is one module."""
    sorter = TopologicalSorter(_graph())
    try:
        sorter.prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


# One name for one thing that has to exist twice.
SAME_THING = {
    "KernelDiffHarness": "what users construct, and what it stands for",
}


def test_no_class_name_means_two_things() -> None:
    found: dict[str, list[str]] = {}
    for name, path in _modules().items():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(name)
    twice = {name: where for name, where in found.items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in SAME_THING} == {}
    assert set(SAME_THING) <= set(twice)


def test_every_module_can_be_reached() -> None:
    """From the command, the public API, the pytest plugin, or as a member that is discovered."""
    modules = _modules()
    graph = _graph()
    reached: set[str] = set()
    todo = ["compilescope", "compilescope.__main__", "compilescope.pytest_plugin"]
    todo += [
        name for name, path in modules.items() if _is_member(tree_of(path)) or _is_started(name)
    ]
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached.add(name)
        todo += graph[name] | (_named(name, modules[name]) & set(modules))
        above = name.rpartition(".")[0]
        todo += [above] if above in modules else []
    assert sorted(set(modules) - reached) == []


MEMBERS = {"RULE", "FIX", "FIXES", "HOOK", "FORMAT", "PASS", "SECTION", "STEP", "FORM", "PAGE"}
MEMBERS |= {"MODEL", "COMMAND", "OPS", "CANDIDATE", "CANDIDATES"}


def _is_member(tree: ast.Module) -> bool:
    """Whether discovery finds it: it carries the object that its folder is searched for."""
    names = {
        target.id
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return bool(MEMBERS & (names | functions))


def _is_started(name: str) -> bool:
    """Whether Python itself starts it, in a process of ours or the user's."""
    return ".boot." in name


def _named(name: str, path: Path) -> set[str]:
    """Modules in texts: what is started with -m or loaded by name, and scripts run by path."""
    values = (node.value for node in nodes_of(path) if isinstance(node, ast.Constant))
    texts = [value for value in values if isinstance(value, str)]
    named = {found for text in texts for found in re.findall(r"compilescope(?:\.\w+)+", text)}
    beside = name.rpartition(".")[0]
    return named | {f"{beside}.{text[:-3]}" for text in texts if re.fullmatch(r"\w+\.py", text)}


def test_the_walks_are_short_and_lead_somewhere() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    part = text.partition("## Three walks")[2].partition("\n## ")[0]
    walks = [re.findall(r"`([\w/]+(?:\.py|/))`", walk) for walk in part.split("\n**")[1:]]
    assert len(walks) == 3
    for files in walks:
        assert 3 < len([name for name in files if name.endswith(".py")]) <= 10
        assert [name for name in files if not (PACKAGE / name).exists()] == []
