"""What a model, function or backend keeps from one call to the next: noted and brought back.

Tensors (weights, buffers, attributes, closures, globals) are found by walking from the callable
through modules, containers, closures and the globals that the user's own functions name; each has
the name that its author knows it by. A backend that counts its graphs, or remembers what it
compiled, answers a second question as the second one: to ask again about a graph as it was asked
then, its state of then is put back, bit by bit.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from compilescope.base.package import PACKAGE
from compilescope.instrument.torchapi.trials.reruns import wide_dtype
from compilescope.measure.tensors.copies import copied_tensors, gradient_of, not_copied, storage_key
from compilescope.measure.tensors.structure import MISSING
from compilescope.measure.tensors.tolerances import is_same
from compilescope.record.stack import origin_of

_MOST = 300_000
"""Objects. Chosen: a model of 100,000 tensors is walked whole, a program that holds a data set is
not."""
_OURS = os.path.join(PACKAGE, "")
_INTERNAL = frozenset({"_parameters", "_buffers", "_modules"})


class ReachableState:
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
        if not _is_users_file(function.__code__.co_filename):
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


def _is_users_file(file: str) -> bool:
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
        if _is_users_file(getattr(module, "__file__", None) or ""):
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
                if is_new and _is_users_file(held.__code__.co_filename):
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


GRADIENT = "grad of "
"""A gradient's name is this and that of its tensor."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_UNCHANGING = (*_PLAIN, tuple, frozenset)


class State:
    """What a model held when this was made."""

    def __init__(self, model: Any, args: Any = ()) -> None:
        self.reachable = ReachableState(("", model), *_stateful(args))
        tensors = self.reachable.tensors
        self._copies = copied_tensors(tensors.values())
        self._described = {n: (t.requires_grad, gradient_of(t)) for n, t in tensors.items()}
        gradients = [gradient for _, gradient in self._described.values()]
        self._gradients = copied_tensors(g for g in gradients if g is not None)
        self._containers = [(held, content_of(held)) for _, held in self.reachable.containers]
        self._cells = [(cell, content_of_cell(cell)) for _, cell in self.reachable.cells]
        self._globals = [(name, held, held[name]) for name, held in self.reachable.globals]
        self._generators = [(g, g.get_state()) for g in self.reachable.generators]

    @property
    def own(self) -> list[Any]:
        """What stays itself where arguments are copied."""
        return [*self.reachable.tensors.values(), *self.reachable.modules]

    @property
    def parameters(self) -> dict[str, torch.Tensor]:
        """What a gradient is taken for."""
        return {
            name: tensor
            for name, tensor in self.reachable.tensors.items()
            if tensor.requires_grad and tensor.is_leaf
        }

    def restore(self) -> None:
        """Bring everything back to what it was."""
        put_back(self._containers, self._cells, self._globals)
        for generator, state in self._generators:
            generator.set_state(state)
        for name, tensor in self.reachable.tensors.items():
            requires, gradient = self._described[name]
            _write(tensor, self._copies[id(tensor)])
            if tensor.is_leaf and tensor.requires_grad != requires:
                tensor.requires_grad_(requires)
            if gradient is not None:
                _write(gradient, self._gradients[id(gradient)])
            if tensor.is_leaf and tensor.grad is not gradient:
                tensor.grad = gradient

    def forget_gradients(self) -> None:
        for tensor in self.parameters.values():
            tensor.grad = None

    def changes(self) -> dict[str, Any]:
        """What is no longer as it was, by name: tensors, gradients, and plain values."""
        found: dict[str, Any] = {}
        for name, tensor in self.reachable.tensors.items():
            before = self._copies[id(tensor)]
            # In float64 it still is what it was, if rounding it gives that.
            narrow = tensor if tensor.is_quantized else tensor.detach().to(before.dtype)
            if not is_same(narrow, before):
                found[name] = tensor
            earlier, now = self._described[name][1], gradient_of(tensor)
            if now is None and earlier is None:
                continue
            if now is None or earlier is None or not is_same(now, self._gradients[id(earlier)]):
                found[f"{GRADIENT}{name}"] = now
        for (name, _), (held, before) in zip(
            self.reachable.containers, self._containers, strict=True
        ):
            found.update(_changed_items(name, held, before))
        for (name, cell), (_, before) in zip(self.reachable.cells, self._cells, strict=True):
            now = content_of_cell(cell)
            if now is not before and isinstance(now, (*_PLAIN, torch.Tensor)):
                found[name] = now
        for name, held, before in self._globals:
            now = held.get(name)
            if now is not before and isinstance(now, (*_PLAIN, torch.Tensor)):
                found[name] = now
        return found

    def replaced(self) -> dict[str, torch.Tensor]:
        """By name: tensors that were put where another one was, or nothing."""
        found: dict[str, torch.Tensor] = {}
        for (name, _), (held, before) in zip(
            self.reachable.containers, self._containers, strict=True
        ):
            found.update(
                (each, now)
                for each, now in _changed_items(name, held, before).items()
                if isinstance(now, torch.Tensor)
            )
        return found

    def before(self, name: str) -> Any:
        """What `changes` would have called by this name; `MISSING` where nothing was."""
        owner = name.removeprefix(GRADIENT)
        tensor = self.reachable.tensors.get(owner)
        if tensor is not None and owner == name:
            return self._copies[id(tensor)]
        if tensor is not None:
            gradient = self._described[owner][1]
            return None if gradient is None else self._gradients[id(gradient)]
        return self._plain_before(name)

    def _plain_before(self, name: str) -> Any:
        for (path, _), (_, before) in zip(self.reachable.containers, self._containers, strict=True):
            items = before.items() if isinstance(before, dict) else enumerate(before)
            for key, value in items:
                if _item_path(path, key) == name:
                    return value
        variables = [(n, before) for n, _, before in self._globals]
        cells = zip(self.reachable.cells, self._cells, strict=True)
        variables += [(n, before) for (n, _), (_, before) in cells]
        return next((value for n, value in variables if n == name), MISSING)

    @contextlib.contextmanager
    def widened(self) -> Iterator[None]:
        """Within the block all its numbers that are not whole are float64, and restored so."""
        tensors = self.reachable.tensors
        wide = copied_tensors(tensors.values(), wide_dtype)
        narrow = [t for t in tensors.values() if wide[id(t)].dtype is not t.dtype]
        kept = [(tensor, tensor.data, gradient_of(tensor)) for tensor in narrow]
        own = self._described
        self._described = {name: (described[0], None) for name, described in own.items()}
        try:
            for tensor, _, _ in kept:
                tensor.grad = None
                tensor.data = wide[id(tensor)]
            yield
        finally:
            self._described = own
            for tensor, data, gradient in kept:
                tensor.grad = None
                tensor.data = data
                tensor.grad = gradient


def _write(tensor: torch.Tensor, copy: torch.Tensor) -> None:
    mode = torch.inference_mode() if tensor.is_inference() else torch.no_grad()
    with mode:
        wide = wide_dtype(copy.dtype)
        fits = tensor.shape == copy.shape and tensor.dtype in (copy.dtype, wide)
        if fits and (storage_key(tensor) is None or tensor.stride() == copy.stride()):
            with contextlib.suppress(NotImplementedError):  # A layout that cannot be written.
                # By `data` its version stays: one of several views (`chunk`, `unbind`) is not to be
                # written in place.
                (tensor if tensor.is_inference() else tensor.data).copy_(copy)
        else:
            tensor.data = copy.clone()


def _stateful(args: Any) -> list[tuple[str, Any]]:
    return [("", thing) for thing in not_copied(args)]


def content_of(held: Any) -> Any:
    return dict(held) if isinstance(held, dict) else list(held)


def put_back(
    containers: Iterable[tuple[Any, Any]],
    cells: Iterable[tuple[Any, Any]],
    names: Iterable[tuple[str, dict[str, Any], Any]],
) -> None:
    """Containers, cells and globals to what they held; what is as it was is left alone."""
    for held, content in containers:
        refill(held, content)
    for cell, content in cells:
        if content is not cell and content_of_cell(cell) is not content:
            cell.cell_contents = content
    for name, where, value in names:
        if where.get(name) is not value:
            where[name] = value


def refill(held: Any, content: Any) -> None:
    if isinstance(held, dict):
        same = len(held) == len(content) and all(
            key in held and held[key] is value for key, value in content.items()
        )
        if not same:
            held.clear()
            held.update(content)
    elif isinstance(held, set):
        if held != set(content):
            held.clear()
            held.update(content)
    elif len(held) != len(content) or any(a is not b for a, b in zip(held, content, strict=True)):
        held.clear()
        held.extend(content)


def _changed_items(name: str, held: Any, before: Any) -> dict[str, Any]:
    """Plain values and tensors that were put where others were; also in a dict that is new, as what
    an optimizer keeps for a weight after the first step."""
    if isinstance(held, dict) != isinstance(before, dict):
        return {}
    now, then = (_by_key(items, ordered=not isinstance(held, set)) for items in (held, before))
    found = {}
    for number, key in enumerate([*now, *(key for key in then if key not in now)]):
        value, old = now.get(key), then.get(key)
        if type(value) is dict and key not in then:
            inner = {k: v for k, v in value.items() if isinstance(v, (*_PLAIN, torch.Tensor))}
            shown = key if isinstance(key, (str, int)) else number
            found.update(_changed_items(_item_path(name, shown), inner, {}))
        if value is old or not isinstance(value, (*_PLAIN, torch.Tensor)):
            continue
        if isinstance(value, _PLAIN) and type(value) is type(old) and value == old:
            continue
        found[_item_path(name, key)] = value
    return found


def _by_key(held: Any, *, ordered: bool) -> dict[Any, Any]:
    """Items by their number; those of a set are their own keys."""
    if isinstance(held, dict):
        return held
    if ordered:
        return dict(enumerate(held))
    return {item: item for item in held if isinstance(item, _PLAIN)}


def _item_path(name: str, key: Any) -> str:
    if not name:
        return str(key)
    return f"{name}.{key}" if isinstance(key, str) else f"{name}[{key!r}]"


def content_of_cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return cell


class BackendState:
    """Of one moment. Tensors are not copied: they may be many, and seldom decide anything."""

    def __init__(self, backend: Any) -> None:
        # What torch makes of a user's compilers (`aot_autograd`) holds them as attributes.
        held = ReachableState(("", backend), ("", getattr(backend, "__dict__", None)))
        functions = [f for f in held.everything if isinstance(f, types.FunctionType)]
        kinds = {type(thing) for thing in held.everything if _is_users(type(thing))}
        shared = [(kind, name, value) for kind in kinds for name, value in vars(kind).items()]
        containers = [container for _, container in held.containers]
        containers += [function.__dict__ for function in functions if function.__dict__]
        containers += [value for _, _, value in shared if isinstance(value, (list, dict, set))]
        self._containers = [(container, content_of(container)) for container in containers]
        self._cells = [(cell, content_of_cell(cell)) for _, cell in held.cells]
        self._globals = [(name, where, where[name]) for name, where in held.globals]
        self._classes = [
            each
            for each in shared
            if isinstance(each[2], _UNCHANGING) and not each[1].startswith("__")
        ]

    def restore(self) -> None:
        put_back(self._containers, self._cells, self._globals)
        for kind, name, value in self._classes:
            if vars(kind).get(name) is not value:
                setattr(kind, name, value)


def _is_users(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is not None and origin_of(file) == "user"
