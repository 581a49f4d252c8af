"""The user's objects as source, with the imports that a script needs for them: constants,
functions, the backend behind Dynamo's wrappers.

What has neither raises `Unwritable`, which says why.

A registered name is enough where torch or an installed package registers it; else the script brings
the function's definition.
"""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import math
import os
import re
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import _get_qualified_name

from compilescope.knowledge.source.definitions import names_read, statements_for
from compilescope.record.written_graph import Arg, Code, Items, Ref, Slice, WrittenDict


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
            folder = _import_folder(home)
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
    return [*_statements(names_read(tree) - {name}, module, name), own.strip()]


def _statements(wanted: set[str], module: ModuleType | None, own: str) -> list[str]:
    try:
        whole = inspect.getsource(module) if module is not None else ""
        return statements_for(wanted, whole, own)
    except (OSError, TypeError, SyntaxError):
        raise Unwritable(f"the source of {own or 'a variable'} is not available") from None


_WORD = re.compile(r"\W+")
_INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")


class Unwritable(Exception):
    """Why there is no source."""


class Imports:
    """What a graph's source needs besides torch."""

    def __init__(self) -> None:
        self.lines: dict[str, str] = {}
        """Name -> the line that brings it."""
        self.folders: list[str] = []

    def target(self, function: Any) -> str:
        """The expression that names a function."""
        if getattr(function, "__module__", "") == "_operator":
            self.lines["operator"] = "import operator"
            return f"operator.{function.__name__}"
        try:
            name = str(_get_qualified_name(function))
        except (AttributeError, RuntimeError):
            raise Unwritable(f"the graph calls {function!r:.80}, which has no name") from None
        if "." not in name or _resolve(name) is function:
            return name
        return self._imported(function)

    def _imported(self, thing: Any) -> str:
        home, path = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
        if not home or not path or "<" in path or home == "__main__":
            name = path or getattr(thing, "__name__", repr(thing))
            raise Unwritable(f"the graph calls {name}, which cannot be imported")
        root, _, rest = path.partition(".")
        name = _WORD.sub("_", f"{home}_{root}")
        self.lines[name] = f"from {home} import {root} as {name}"
        folder = _import_folder(sys.modules.get(home))
        if folder and folder not in self.folders:
            self.folders.append(folder)
        return f"{name}.{rest}" if rest else name


def _import_folder(module: ModuleType | None) -> str:
    """The folder that must be on the path for the module; empty for what is installed."""
    file = getattr(module, "__file__", None)
    if module is None or not file or is_installed(module):
        return ""
    depth = module.__name__.count(".") + (os.path.basename(file) == "__init__.py")
    folder = os.path.abspath(str(file))
    for _ in range(depth + 1):
        folder = os.path.dirname(folder)
    return folder


def is_installed(module: ModuleType) -> bool:
    """Is it there without anything on the path? Python's own modules, and packages."""
    file = getattr(module, "__file__", None)
    if not file:
        return True
    if _INSTALLED.search(file) or module.__name__.split(".")[0] in ("torch", "compilescope"):
        return True
    return str(file).startswith(os.path.dirname(os.__file__) + os.sep)


def literal(value: Any, imports: Imports, names: Mapping[Node, str] | None = None) -> Arg:
    """An argument of a call."""
    if isinstance(value, Node):
        assert names is not None
        return Ref(names[value])
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, enum.Enum):
        return Code(f"{imports.target(type(value))}.{value.name}")
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else Code(f"float('{value}')")
    if isinstance(value, (list, tuple)):
        kind: Any = "list" if isinstance(value, list) else "tuple"
        return Items(kind, tuple(literal(item, imports, names) for item in value))
    if isinstance(value, Mapping):
        return WrittenDict(
            tuple(
                (literal(key, imports, names), literal(item, imports, names))
                for key, item in value.items()
            )
        )
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return Slice(*(literal(part, imports, names) for part in parts))
    return Code(_code(value, imports))


def _code(value: Any, imports: Imports) -> str:
    if value is Ellipsis:
        return "..."
    if isinstance(value, torch.device):
        return f"torch.device({str(value)!r})"
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format, complex)):
        return str(value)
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        if value.node.hint is None:
            raise Unwritable(f"the graph contains the number {value}, which only the program knows")
        return repr(value.node.hint)
    if isinstance(value, ModuleType):
        imports.lines[value.__name__.split(".")[0]] = f"import {value.__name__}"
        return value.__name__
    if callable(value) and not isinstance(value, torch.nn.Module):
        return imports.target(value)
    raise Unwritable(f"the graph contains an object of type {type(value).__name__}")


def _resolve(name: str) -> Any:
    first, *rest = name.split(".")
    value = sys.modules.get(first) if first == "torch" else None
    for part in rest:
        value = getattr(value, part, None)
    return value


@dataclass(frozen=True)
class UsedBackend:
    """What torch.compile was told to compile with."""

    function: Any
    name: str
    """For people; where `is_named`, also for torch.compile."""
    is_named: bool
    """torch, or a package, registers it under this name."""
    options: tuple[str, ...] = ()
    """Further arguments of torch.compile, as source."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The same as objects."""


def used_backend(compiler: Any, *, as_source: bool = True) -> UsedBackend:
    """`compiler` is a name, a function, or what Dynamo made of one. Unwritable where arguments are
    wanted `as_source` and have none."""
    options: list[str] = []
    arguments: dict[str, Any] = {}
    seen: set[int] = set()
    while id(compiler) not in seen:
        seen.add(id(compiler))
        inner = getattr(compiler, "_torchdynamo_orig_backend", None)
        inner = inner or getattr(compiler, "_torchdynamo_orig_callable", None)
        if inner is None and type(compiler).__name__ == "_TorchCompileWrapper":
            inner = getattr(compiler, "compiler_fn", None)
            for name, value in getattr(compiler, "kwargs", {}).items():
                options += [f"{name}={_plain(value)}"] if as_source else []
                arguments[name] = value
        if inner is None and isinstance(compiler, functools.partial) and not compiler.args:
            inner = compiler.func if not compiler.keywords else None
        compiler = compiler if inner is None else inner
    if isinstance(compiler, str):
        return UsedBackend(_registered(compiler), compiler, _is_public(compiler), tuple(options))
    if type(compiler).__name__ == "_TorchCompileInductorWrapper":
        config = getattr(compiler, "config", {})
        options += [f"options={_plain(config)}"] if config and as_source else []
        return UsedBackend(compiler, "inductor", True, tuple(options))
    name = _registered_name(compiler) or getattr(compiler, "__name__", type(compiler).__name__)
    return UsedBackend(compiler, name, _is_public(name, compiler), tuple(options), arguments)


def backend_definitions(used: UsedBackend) -> tuple[str, Definitions]:
    """The expression that names it, and what must be said first."""
    code = Definitions()
    if used.is_named:
        return repr(used.name), code
    return code.bring(used.function), code


def _registry() -> Any:
    from torch._dynamo.backends import registry

    return registry


def _registered(name: str) -> Any:
    return _registry().lookup_backend(name)


def _registered_name(function: Any) -> str:
    known = getattr(_registry(), "_COMPILER_FNS", {})
    return next((name for name, each in known.items() if each is function), "")


def _is_public(name: str, function: Any = None) -> bool:
    """Is the name all that another process needs?"""
    registry = _registry()
    if name not in registry.list_backends(exclude_tags=None):
        return False
    known = registry.lookup_backend(name)
    if function is not None and known is not function:
        return False
    home = str(getattr(known, "__module__", None) or type(known).__module__)
    return home.split(".")[0] == "torch" or _is_installed(name)


def _is_installed(name: str) -> bool:
    """torch forgets that a backend is a package's as soon as it is looked up (2.13)."""
    return any(entry.name == name for entry in entry_points(group="torch_dynamo_backends"))


def _plain(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        words = ", ".join(_plain(item) for item in value)
        return f"[{words}]" if isinstance(value, list) else f"({words},)" if value else "()"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_plain(k)}: {_plain(v)}" for k, v in value.items()) + "}"
    raise Unwritable(f"the backend has an argument of type {type(value).__name__}")
