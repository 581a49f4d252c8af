"""A program of several files as one: the user's own modules, written into what imports them.

The modules are found by reading files, never by importing; only those in the program's own folders
are the user's, installed packages stay imports. A module can be moved where that changes nothing
(what its names are bound by, and how they are used, says so). One that cannot stays an import, and
so does all that it imports: nothing may be there twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import libcst as cst
import libcst.helpers as h
import libcst.metadata as md

from compilescope.change.minify.source.edits import is_docstring, names_in, walk


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


_ASKING = {"__file__", "__path__", "__spec__", "__package__", "__loader__", "globals", "vars"}


@dataclass(frozen=True)
class OwnImport:
    """An import of an own module."""

    statement: cst.Import | cst.ImportFrom
    module: str
    """Absolute name."""
    names: tuple[tuple[str, str], ...] = ()
    """(name, bound as) of `from module import ...`; ("*", "*") is all."""
    bound: str = ""
    """What `import module` binds, as it is written before an attribute: `package.module`."""
    on_top: bool = True
    """It stands at the top level of its file."""


@dataclass
class OwnModule:
    """One file of the user's."""

    name: str
    tree: cst.Module
    package: str = ""
    """What its relative imports begin from."""
    imports: list[OwnImport] = field(default_factory=list)
    problem: str = ""
    """Why it cannot be written into another one; empty where it can."""


class Finder:
    """Looks for modules in the folders of the program, and nowhere else."""

    def __init__(self, folders: tuple[str, ...]) -> None:
        self._folders = folders
        self._known: dict[str, OwnModule | None] = {}

    def find(self, name: str) -> OwnModule | None:
        if name not in self._known:
            self._known[name] = None
            path = self._path(name)
            if path is not None:
                self._known[name] = self._read(name, path)
        return self._known[name]

    def _path(self, name: str) -> Path | None:
        for folder in self._folders:
            base = Path(folder, *name.split("."))
            for path in (base / "__init__.py", base.with_name(f"{base.name}.py")):
                if path.is_file():
                    return path
        return None

    def _read(self, name: str, path: Path) -> OwnModule | None:
        try:
            tree = cst.parse_module(path.read_bytes())
        except (OSError, cst.ParserSyntaxError, UnicodeDecodeError, RecursionError):
            return None
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        return OwnModule(name, tree, package)

    def look_into(self, module: OwnModule) -> None:
        """Find what it imports, and what keeps it from being moved. Once for each module."""
        on_top = set(_top_imports(module.tree))
        for node in walk(module.tree):
            if not isinstance(node, (cst.Import, cst.ImportFrom)):
                continue
            module.imports += [
                replace(each, on_top=node in on_top) for each in self._own(node, module.package)
            ]
        asked = [name.value for name in names_in(module.tree) if name.value in _ASKING]
        if asked:
            module.problem = f"{module.name} uses {asked[0]}"

    def _own(self, node: cst.Import | cst.ImportFrom, package: str) -> Iterator[OwnImport]:
        if isinstance(node, cst.Import):
            for alias in node.names:
                name = alias.evaluated_name
                if self.find(name) is not None:
                    yield OwnImport(node, name, bound=alias.evaluated_alias or name)
            return
        base = _absolute(node, package)
        if isinstance(node.names, cst.ImportStar):
            if self.find(base) is not None:
                yield OwnImport(node, base, (("*", "*"),))
            return
        plain = []
        for alias in node.names:
            name, bound = alias.evaluated_name, alias.evaluated_alias or alias.evaluated_name
            inner = f"{base}.{name}" if base else name
            if self.find(inner) is not None and not self._defines(base, name):
                yield OwnImport(node, inner, bound=bound)
            else:
                plain.append((name, bound))
        if plain and self.find(base) is not None:
            yield OwnImport(node, base, tuple(plain))

    def _defines(self, module: str, name: str) -> bool:
        found = self.find(module) if module else None
        return found is not None and name in global_names(found.tree)


def _top_imports(tree: cst.Module) -> Iterator[cst.CSTNode]:
    for line in tree.body:
        if isinstance(line, cst.SimpleStatementLine):
            yield from line.body


def _absolute(node: cst.ImportFrom, package: str) -> str:
    name = (h.get_full_name_for_node(node.module) or "") if node.module else ""
    if not node.relative:
        return name
    parts = package.split(".") if package else []
    parts = parts[: len(parts) - (len(node.relative) - 1)]
    return ".".join([*parts, *([name] if name else [])])


class NameTable:
    """Knows what every name of every module is called in the one file."""

    def __init__(self, main: OwnModule, moved: list[OwnModule]) -> None:
        self._main = main
        self._moved = {module.name: module for module in moved}
        self._owned = {m.name: global_names(m.tree) - self._borrowed(m) for m in [main, *moved]}
        self._renamed: dict[str, dict[str, str]] = {main.name: {}}
        taken = {name: import_words(main.tree).get(name) for name in self._owned[main.name]}
        for module in moved:
            words = import_words(module.tree)
            self._renamed[module.name] = {}
            hidden = self._hidden(module)
            for name in sorted(self._owned[module.name]):
                if name not in taken and name not in hidden:
                    taken[name] = words.get(name)
                elif taken.get(name) != words.get(name) or "" in (words.get(name) or ("",)):
                    new = f"{module.name.replace('.', '_')}_{name}"
                    self._renamed[module.name][name] = new

    def _hidden(self, module: OwnModule) -> set[str]:
        """Names that functions of those who import it use for variables of their own."""
        importers = [
            each
            for each in (self._main, *self._moved.values())
            if any(one.module == module.name for one in each.imports)
        ]
        return {name for each in importers for name in local_names(each.tree)}

    def _borrowed(self, module: OwnModule) -> set[str]:
        """Names that it imports from modules that are moved."""
        return {
            bound
            for each in module.imports
            if each.module in self._moved
            for _, bound in (*each.names, ("", each.bound.split(".")[0]))
        }

    def name_of(self, module: str, name: str) -> str:
        """What `name` of `module` is called in the one file."""
        for each in (self._moved.get(module) or self._main).imports:
            for original, bound in each.names:
                if bound == name and each.module in self._moved:
                    return self.name_of(each.module, original)
        return self._renamed[module].get(name, name)

    def write(self) -> str:
        future: list[Any] = []
        body: list[Any] = []
        for module in [*self._moved.values(), self._main]:
            for line in self._lines(module):
                (future if _is_future(line) else body).append(line)
        return self._main.tree.with_changes(body=[*future[:1], *body], header=[]).code

    def _lines(self, module: OwnModule) -> list[Any]:
        names = {name: self.name_of(module.name, name) for name in global_names(module.tree)}
        changing = _Renaming(module.tree, names, self._aliases(module))
        lines: list[Any] = []
        for line in module.tree.body:
            if module is not self._main and (is_docstring(line) or _is_main_guard(line)):
                continue
            inside = line.body if isinstance(line, cst.SimpleStatementLine) else ()
            own = [each for each in module.imports if each.statement in inside]
            moved = [each for each in own if each.module in self._moved]
            lines += self._instead(line, moved) if moved else [line.visit(changing)]
        return lines

    def _aliases(self, module: OwnModule) -> dict[str, dict[str, str]]:
        """Dotted module -> its names, for `module.name` -> `name`."""
        return {
            each.bound: {
                name: self.name_of(each.module, name)
                for name in global_names(self._moved[each.module].tree)
            }
            for each in module.imports
            if each.bound and each.module in self._moved
        }

    def _instead(self, line: Any, moved: list[OwnImport]) -> list[Any]:
        """What stays of a line with imports of moved modules."""
        body = [each for statement in line.body for each in _rest(statement, moved)]
        lines = [line.with_changes(body=body)] if body else []
        for each in moved:
            if each.names == (("*", "*"),):
                for name in sorted(global_names(self._moved[each.module].tree)):
                    new = self.name_of(each.module, name)
                    if new != name and not name.startswith("_"):
                        lines.append(cst.parse_statement(f"{name} = {new}"))
        return lines


def _rest(statement: Any, moved: list[OwnImport]) -> list[Any]:
    """`import torch, own` is `import torch` without `own`."""
    mine = [each for each in moved if each.statement is statement]
    if not mine:
        return [statement]
    if isinstance(statement.names, cst.ImportStar):
        return []
    gone = {name for each in mine for name, _ in each.names}
    if isinstance(statement, cst.Import):
        gone |= {each.module for each in mine}
    else:
        gone |= {each.module.rpartition(".")[2] for each in mine if each.bound}
    left = [alias for alias in statement.names if alias.evaluated_name not in gone]
    if not left:
        return []
    left[-1] = left[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return [statement.with_changes(names=left)]


def _is_future(line: Any) -> bool:
    first = line.body[0] if isinstance(line, cst.SimpleStatementLine) and line.body else None
    return (
        isinstance(first, cst.ImportFrom)
        and first.module is not None
        and h.get_full_name_for_node(first.module) == "__future__"
    )


def _is_main_guard(line: Any) -> bool:
    return isinstance(line, cst.If) and any(
        isinstance(node, cst.Name) and node.value == "__name__" for node in walk(line.test)
    )


class _Renaming(cst.CSTTransformer):
    """Gives globals their new names, and turns `module.name` into `name`."""

    def __init__(
        self, tree: cst.Module, names: dict[str, str], aliases: dict[str, dict[str, str]]
    ) -> None:
        super().__init__()
        self._aliases = aliases
        self._new: dict[cst.CSTNode, str] = {}
        for each in global_bindings(tree):
            new = names.get(each.name, each.name)
            if new == each.name:
                continue
            if isinstance(each, md.Assignment) and not isinstance(each, md.ImportAssignment):
                named: Any = getattr(each.node, "name", each.node)
                self._new[named] = new
            for reference in each.references:
                self._new[reference.node] = new
        for node in walk(tree):
            if isinstance(node, cst.NameItem) and node.name.value in names:
                self._new[node.name] = names[node.name.value]

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        new = self._new.get(original_node)
        if new is not None and isinstance(updated_node, cst.Name):
            return updated_node.with_changes(value=new)
        if isinstance(original_node, cst.Attribute):
            names = self._aliases.get(h.get_full_name_for_node(original_node.value) or "")
            if names is not None and original_node.attr.value in names:
                return cst.Name(names[original_node.attr.value])
        return updated_node


@dataclass(frozen=True)
class OneFileProgram:
    """A program in one file, as far as that goes."""

    text: str
    inlined: tuple[str, ...] = ()
    left: dict[str, str] = field(default_factory=dict)
    """Own modules that it still imports, and why."""


def flatten(text: str, folders: tuple[str, ...], package: str = "") -> OneFileProgram:
    """`package`: of the program itself, where it is run as a module of one."""
    finder = Finder(folders)
    main = OwnModule("__main__", cst.parse_module(text), package)
    order = _in_order(main, finder)
    left = _left_out(main, order)
    moved = [module for module in order if module.name not in left]
    if not moved:
        return OneFileProgram(text, left=left)
    names = tuple(module.name for module in moved)
    return OneFileProgram(NameTable(main, moved).write(), names, left)


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
