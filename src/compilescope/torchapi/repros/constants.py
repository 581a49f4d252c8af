"""Constants and functions of a graph as expressions, with the imports that a script needs for them.

What has no such expression raises `Unwritable`, which says why.
"""

from __future__ import annotations

import enum
import math
import os
import re
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import _get_qualified_name

from compilescope.model.written_graph import Arg, Code, Items, Ref, Slice, WrittenDict

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
        folder = import_folder(sys.modules.get(home))
        if folder and folder not in self.folders:
            self.folders.append(folder)
        return f"{name}.{rest}" if rest else name


def import_folder(module: ModuleType | None) -> str:
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
