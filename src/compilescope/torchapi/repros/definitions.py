"""Objects of the user's program as source: an import, or the statements that define them.

What has neither raises `Unwritable`, which says why.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import textwrap
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from compilescope.model.written_graph import Code
from compilescope.torchapi.repros.constants import (
    Imports,
    Unwritable,
    import_folder,
    is_installed,
    literal,
)


@dataclass
class Definitions:
    """What a script must say before it can use them."""

    imports: dict[str, str] = field(default_factory=dict)
    """Name -> the line that brings it; empty where it is defined."""
    folders: list[str] = field(default_factory=list)
    """Where Python finds the user's modules."""
    definitions: list[str] = field(default_factory=list)

    def bring(self, thing: Any) -> str:
        """Make it known in the script, and say under which name."""
        name = str(getattr(thing, "__name__", ""))
        home = _home(thing, name)
        if home is None and not isinstance(thing, type) and not inspect.isfunction(thing):
            home, name = _variable(thing)
        if not name.isidentifier():
            raise Unwritable(f"{thing!r:.80} has no name")
        if name in self.imports:
            return name
        if home is not None and (is_installed(home) or home.__name__ != "__main__"):
            self.imports[name] = f"from {home.__name__} import {name}"
            folder = import_folder(home)
            if folder and folder not in self.folders:
                self.folders.append(folder)
            return name
        self.imports[name] = ""
        self._define(thing, name, home)
        return name

    def _define(self, thing: Any, name: str, home: ModuleType | None) -> None:
        module = home or sys.modules.get(getattr(thing, "__module__", ""))
        variable = (
            home is not None and not isinstance(thing, type) and not inspect.isfunction(thing)
        )
        texts = _statements({name}, module, "") if variable else _source(thing, module)
        if inspect.isfunction(thing):
            self._close(thing)
        self.definitions += [text for text in texts if text not in self.definitions]

    def _close(self, function: Any) -> None:
        """What a nested function has from around it."""
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            if cell.cell_contents is function or name in self.imports:
                continue
            value = cell.cell_contents
            if callable(value) and not _is_torch(value):
                known = self.bring(value)
                if known != name:
                    self.definitions.append(f"{name} = {known}")
                continue
            self.definitions.append(f"{name} = {_literal(value)}")


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{_literal(key)}: {_literal(item)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (list, tuple, set, frozenset)):
        items = ", ".join(_literal(item) for item in value)
        if isinstance(value, tuple):
            return f"({items},)" if value else "()"
        return f"[{items}]" if isinstance(value, list) else f"{type(value).__name__}([{items}])"
    constant = literal(value, Imports())
    return constant.text if isinstance(constant, Code) else repr(constant)


def _is_torch(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).split(".")[0] in ("torch", "_operator", "math")


def _home(thing: Any, name: str) -> ModuleType | None:
    """The module that has it under its name."""
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    return module if module is not None and getattr(module, name, None) is thing else None


def _variable(thing: Any) -> tuple[ModuleType | None, str]:
    """The user's module that has a variable for it."""
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType) or (
            module.__name__ != "__main__" and is_installed(module)
        ):
            continue
        for name, value in list(vars(module).items()):
            if value is thing and not name.startswith("_"):
                return module, name
    raise Unwritable(
        f"an object of type {type(thing).__name__} that is not a module-level variable"
    )


def _source(thing: Any, module: ModuleType | None) -> list[str]:
    """A class or function, and all that its file says at top level of the names in it."""
    name = getattr(thing, "__name__", type(thing).__name__)
    try:
        own = textwrap.dedent(inspect.getsource(thing))
        tree = ast.parse(own)
    except (OSError, TypeError, SyntaxError):
        raise Unwritable(f"the source of {name} is not available") from None
    if not isinstance(tree.body[0], (ast.FunctionDef, ast.ClassDef)):
        raise Unwritable(f"{name} is not a function or class of its own")
    return [*_statements(_names(tree) - {name}, module, name), own.strip()]


def _statements(wanted: set[str], module: ModuleType | None, own: str) -> list[str]:
    try:
        whole = inspect.getsource(module) if module is not None else ""
        top = ast.parse(whole).body
    except (OSError, TypeError, SyntaxError):
        raise Unwritable(f"the source of {own or 'a variable'} is not available") from None
    used: set[int] = set()
    changed = True
    while changed:
        changed = False
        for number, statement in enumerate(top):
            if number in used or not (_bound(statement) & wanted) or own in _bound(statement):
                continue
            used.add(number)
            wanted |= _names(statement)
            changed = True
    return [_text(whole, top[number]) for number in sorted(used)]


def _text(whole: str, statement: ast.stmt) -> str:
    """With its decorators, which ast leaves out of a statement's own text."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(each.lineno for each in decorators)])
    lines = whole.splitlines()[first - 1 : statement.end_lineno]
    return "\n".join(lines) if decorators else ast.get_source_segment(whole, statement) or ""


def _names(tree: ast.AST) -> set[str]:
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return {name for name in found if not hasattr(builtins, name)}


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, ast.Assign):
        return {target.id for target in statement.targets if isinstance(target, ast.Name)}
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return {statement.target.id}
    return set()
