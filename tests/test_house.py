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
    todo = ["compilescope", "compilescope.__main__", "compilescope.apps.pytest_plugin"]
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


MEMBERS = {"RULE", "FIX", "FIXES", "HOOK", "HOOKS", "FORMAT", "PASS", "PASSES", "SECTION"}
MEMBERS |= {"FORM", "PAGE", "MODEL", "COMMAND", "OPS", "CANDIDATE", "CANDIDATES"}


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


def test_every_number_says_where_it_comes_from() -> None:
    """A threshold without a reason is one that nobody dares to change."""
    bare = []
    for path in _modules().values():
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in tree_of(path).body:
            named = _number_name(node)
            if named and named not in UNITS and not _says_why(lines, node.lineno - 1):
                bare.append(f"{path.relative_to(PACKAGE)}:{node.lineno}: {named}")
    assert bare == []


UNITS = {"_NS_PER_MS", "_DAY_NS"}
"""Nobody chose these."""


def _number_name(node: ast.stmt) -> str:
    """The constant of numbers that a statement makes; empty where it makes none."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return ""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    names = [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]
    leaves = [each for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
    others = {type(each) for each in ast.walk(node.value)} - _OF_NUMBERS
    whole = leaves and all(type(each.value) in (int, float) for each in leaves) and not others
    return names[0] if whole and names and names[0].isupper() else ""


_OF_NUMBERS = {ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.Load}
_OF_NUMBERS |= {ast.USub, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.LShift, ast.Pow}


def _says_why(lines: list[str], at: int) -> bool:
    """On its line, below it, or above the group of constants that it stands in."""
    if "#" in lines[at] or lines[min(at + 1, len(lines) - 1)].startswith('"""'):
        return True
    above = at - 1
    while above >= 0 and re.match(r"[A-Z_][A-Z0-9_, ]* = ", lines[above]):
        above -= 1
    if above >= 0 and lines[above].startswith("#"):
        return True
    below = at + 1
    while below < len(lines) and re.match(r"[A-Z_][A-Z0-9_, ]* = ", lines[below]):
        below += 1
    return below < len(lines) and below - at <= 4 and lines[below].startswith('"""')


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("_MOST = 3\n\n", False),
        ("_MOST = 3  # As torch has it.\n", True),
        ('_MOST = 3\n"""Chosen: what fits."""\n', True),
        ("# Chosen: bounds for memory.\n_LONG = 1\n_MOST = 3\n", True),
        ('_LONG = 1\n"""Chosen."""\n_MOST = 3\n\n', False),
    ],
)
def test_what_counts_as_a_reason(text: str, says: bool) -> None:
    lines = [*text.splitlines(), ""]
    assert _says_why(lines, next(n for n, line in enumerate(lines) if "_MOST" in line)) is says


def test_names_are_those_that_a_reader_would_guess() -> None:
    """Words that once named modules and classes, and told a newcomer nothing."""
    found = []
    for name, path in _modules().items():
        classes = [node.name for node in tree_of(path).body if isinstance(node, ast.ClassDef)]
        for each in (name.rpartition(".")[2], *classes):
            parts = {part.lower() for part in re.findall(r"[A-Z]?[a-z]+", each)}
            found += [f"{name}: {each}"] if parts & RIDDLES else []
    assert found == []


RIDDLES = {"twigs", "strokes", "kin", "telling", "asked", "wishes", "handing", "handed", "company"}
RIDDLES |= {"holdings", "stretches", "watched", "probed", "behind", "warmth", "weaving", "planting"}
RIDDLES |= {"brief", "glance", "told", "retold", "shelf", "rails", "met", "came", "lack"}
RIDDLES |= {"weaver", "occasion", "ambient", "repertoire", "beside", "elsewhere"}


def test_the_walks_are_short_and_lead_somewhere() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    part = text.partition("## Five walks")[2].partition("\n## ")[0]
    walks = [
        re.findall(r"^\d+\. `([\w/]+(?:\.py|/))`", walk, re.M) for walk in part.split("\n**")[1:]
    ]
    assert len(walks) == 5
    for files in walks:
        assert files[0].startswith("apps/cli/commands/") and 3 < len(files) <= 10
        assert [name for name in files if not (PACKAGE / name).exists()] == []


def test_the_map_shows_every_door_in_the_order_of_the_layers() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    part = text.partition("## The map of the house")[2].partition("\n## ")[0]
    layers = re.findall(r"layers = \[(.+?)\]", (ROOT / "pyproject.toml").read_text(), re.S)[0]
    begun = [
        re.split(r"\s{2,}", line.strip())[0] for line in part.splitlines() if line[:4].isspace()
    ]
    assert begun == re.findall(r'"(.+)"', layers)


def test_a_benchmark_stands_behind_a_figure_or_a_bar() -> None:
    """One that no page names is measured by nobody; some are what others begin with."""
    scripts = sorted((ROOT / "benchmarks").glob("*.py"))
    pages = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    told = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    code = {path: path.read_text(encoding="utf-8") for path in scripts}

    def is_used(script: Path) -> bool:
        import_or_path = re.compile(rf"(?:from|import) {script.stem}\b|\"{script.name}\"")
        return any(import_or_path.search(code[other]) for other in scripts if other != script)

    assert [s.name for s in scripts if s.name not in told and not is_used(s)] == []


def test_no_test_sets_the_clock_of_the_process() -> None:
    """Servers and pools of other tests run beside it, and sleep as long as it is put forward. A
    module may be given a clock of its own."""
    clocks = re.compile(r"setattr\((?:\"time\.|time, )")
    files = sorted(Path(__file__).parent.rglob("*.py"))
    found = [path.name for path in files if clocks.search(path.read_text("utf-8"))]
    assert found == [], "they set the clock of the whole process"
