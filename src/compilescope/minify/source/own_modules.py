"""The modules of the user's own that a program imports: found by reading files, never by importing.

Only those in the program's own folders are the user's; installed packages stay imports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import libcst as cst
import libcst.helpers as h

from compilescope.minify.source.nodes import names_in, walk
from compilescope.minify.source.scopes import global_names

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
