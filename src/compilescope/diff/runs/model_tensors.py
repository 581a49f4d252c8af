"""What a model or function holds: weights, buffers, tensors in attributes, closures and globals.

Found by walking from the callable through modules, containers, closures and the globals that the
user's own functions name. Each tensor has the name that its author knows it by.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from compilescope.model.stack import origin_of

_MOST = 300_000
"""Objects. Chosen: a model of 100,000 tensors is walked whole, a program that holds a data set is
not."""
_OURS = os.path.join(str(Path(os.path.abspath(__file__)).parents[2]), "")
_INTERNAL = frozenset({"_parameters", "_buffers", "_modules"})


class Holdings:
    """Everything that can change from one call to the next, by walking from `roots`."""

    def __init__(self, *roots: tuple[str, Any]) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        """Each once, by its first name; a tied weight has others."""
        self.modules: list[torch.nn.Module] = []
        self.generators: list[torch.Generator] = []
        self.containers: list[tuple[str, Any]] = []
        """Dicts, lists, sets and deques that may be written into; attributes are dicts too."""
        self.cells: list[tuple[str, types.CellType]] = []
        self.globals: list[tuple[str, dict[str, Any]]] = []
        """Names of global variables that the user's functions look up, and where."""
        self._seen: set[int] = set()
        self._alive: list[Any] = []
        """Ids stay theirs as long as what they name is alive."""
        waiting = deque(roots)
        while waiting and len(self._seen) < _MOST:
            name, value = waiting.popleft()
            if id(value) in self._seen:
                continue
            self._seen.add(id(value))
            self._alive.append(value)
            waiting.extend(self._within(name, value))

    @property
    def everything(self) -> list[Any]:
        """All that was found on the way."""
        return self._alive

    def _within(self, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(value, torch.Tensor):
            self.tensors[self._free(name or "tensor")] = value
        elif isinstance(value, torch.nn.Module):
            yield from self._module(name, value)
        elif isinstance(value, torch.Generator):
            self.generators.append(value)
        elif isinstance(value, dict):
            self.containers.append((name, value))
            yield from ((f"{name}[{_word(key)}]", item) for key, item in list(value.items()))
        elif isinstance(value, (list, deque, set)):
            self.containers.append((name, value))
            yield from ((f"{name}[{i}]", item) for i, item in enumerate(list(value)))
        elif isinstance(value, (tuple, frozenset)):
            yield from ((f"{name}[{i}]", item) for i, item in enumerate(value))
        elif isinstance(value, types.MethodType):
            yield name, value.__self__
            yield name, value.__func__
            yield from _called_methods(type(value.__self__), value.__func__)
        elif isinstance(value, functools.partial):
            yield from ((name, item) for item in (value.func, *value.args, value.keywords))
        elif isinstance(value, types.FunctionType):
            yield from self._function(value)
        elif _is_instance(value):
            self.containers.append((name, value.__dict__))
            yield from ((_joined(name, key), item) for key, item in list(vars(value).items()))
            yield from _call_of(value, name)

    def _module(self, name: str, module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
        self.modules.append(module)
        self.containers.append((name, module.__dict__))
        for kind in sorted(_INTERNAL):
            held = module.__dict__.get(kind) or {}
            if isinstance(held, dict):  # A TorchScript module has another thing, and never less.
                self.containers.append((name, held))
        for kind in ("_parameters", "_buffers", "_modules"):
            for key, item in list((module.__dict__.get(kind) or {}).items()):
                yield _joined(name, key), item
        for key, item in list(module.__dict__.items()):
            if key not in _INTERNAL:
                yield _joined(name, key), item
        # Asked as it stands: TorchScript's has no value for a class.
        forward = inspect.getattr_static(type(module), "forward", None)
        if isinstance(forward, types.FunctionType):
            yield "", forward
            yield from _called_methods(type(module), forward)

    def _function(self, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
        if not _is_users(function.__code__.co_filename):
            # A decorator of a library still holds the user's function.
            for cell in function.__closure__ or ():
                content = _content(cell)
                if isinstance(content, (types.FunctionType, torch.nn.Module, torch.Tensor)):
                    yield "", content
            return
        names = function.__code__.co_freevars
        for name, cell in zip(names, function.__closure__ or (), strict=False):
            self.cells.append((name, cell))
            yield name, _content(cell)
        for item in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            yield f"{function.__name__}'s default", item
        named = list(_named(function.__code__))
        for space in (function.__globals__, *_user_modules(named, function.__globals__)):
            for name in named:
                if name in space:
                    self.globals.append((name, space))
                    yield name, space[name]

    def _free(self, name: str) -> str:
        number, free = 2, name
        while free in self.tensors:
            free, number = f"{name}#{number}", number + 1
        return free


def _is_users(file: str) -> bool:
    """Not ours either, wherever we are installed: what we record is no state of a model."""
    return origin_of(file) in ("user", "generated") and not file.startswith(_OURS)


def _is_instance(value: Any) -> bool:
    """An object with attributes of its own that no library keeps for itself."""
    kind = type(value)
    if isinstance(value, (type, types.ModuleType, types.CodeType)) or not hasattr(
        value, "__dict__"
    ):
        return False
    if isinstance(value, torch.optim.Optimizer):
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or "<stdin>"
    if file.startswith(_OURS) or kind.__module__.startswith("numpy"):
        return False
    return origin_of(file) in ("user", "library")


def _call_of(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    known = (vars(kind).get("__call__") for kind in type(value).__mro__)
    call = next(filter(None, known), None)
    if isinstance(call, types.FunctionType):
        yield name, call
        yield from _called_methods(type(value), call)


def _user_modules(names: list[str], space: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The variables of files of the user's that a function calls by `file.name`."""
    for module in dict.fromkeys(space[name] for name in names if _is_module(space.get(name))):
        if _is_users(getattr(module, "__file__", None) or ""):
            yield vars(module)


def _is_module(value: Any) -> bool:
    return isinstance(value, types.ModuleType)


def _called_methods(kind: type, first: Any) -> Iterator[tuple[str, Any]]:
    """The user's own methods that this one may call by name, and those that they may call."""
    found = [first] if isinstance(first, types.FunctionType) else []
    for function in found:  # It grows while it is walked.
        for name in _named(function.__code__):
            for each in (vars(base).get(name) for base in kind.__mro__):
                # A static method or class method holds a function, a property its getter.
                held: Any = getattr(each, "__func__", None) or getattr(each, "fget", None) or each
                is_new = isinstance(held, types.FunctionType) and held not in found
                if is_new and _is_users(held.__code__.co_filename):
                    found.append(held)
                    yield "", held


def _named(code: types.CodeType) -> Iterator[str]:
    """The names that a function and those within it look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _named(constant)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _joined(name: str, key: str) -> str:
    return f"{name}.{key}" if name else str(key)


def _word(key: Any) -> str:
    return repr(key) if isinstance(key, (str, int, float, bool)) else type(key).__name__
