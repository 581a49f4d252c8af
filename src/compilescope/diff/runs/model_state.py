"""What a model or a backend keeps from one call to the next, noted and brought back, bit by bit.

A backend that counts its graphs, or remembers what it compiled, answers a second question as the
second one. To ask again about a graph as it was asked then, its state of then is put back.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from compilescope.diff.runs.model_tensors import Holdings
from compilescope.model.stack import origin_of
from compilescope.tensors.copies import copied_tensors, not_copied, storage_key
from compilescope.tensors.distances import is_same
from compilescope.tensors.structure import MISSING
from compilescope.torchapi.trials.reruns import wide_dtype

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_UNCHANGING = (*_PLAIN, tuple, frozenset)


class State:
    """What a model held when this was made."""

    def __init__(self, model: Any, args: Any = ()) -> None:
        self.holdings = Holdings(("", model), *_stateful(args))
        tensors = self.holdings.tensors
        self._copies = copied_tensors(tensors.values())
        self._described = {n: (t.requires_grad, gradient_of(t)) for n, t in tensors.items()}
        gradients = [gradient for _, gradient in self._described.values()]
        self._gradients = copied_tensors(g for g in gradients if g is not None)
        self._containers = [(held, content_of(held)) for _, held in self.holdings.containers]
        self._cells = [(cell, content_of_cell(cell)) for _, cell in self.holdings.cells]
        self._globals = [(name, held, held[name]) for name, held in self.holdings.globals]
        self._generators = [(g, g.get_state()) for g in self.holdings.generators]

    @property
    def own(self) -> list[Any]:
        """What stays itself where arguments are copied."""
        return [*self.holdings.tensors.values(), *self.holdings.modules]

    @property
    def parameters(self) -> dict[str, torch.Tensor]:
        """What a gradient is taken for."""
        return {
            name: tensor
            for name, tensor in self.holdings.tensors.items()
            if tensor.requires_grad and tensor.is_leaf
        }

    def restore(self) -> None:
        """Bring everything back to what it was."""
        put_back(self._containers, self._cells, self._globals)
        for generator, state in self._generators:
            generator.set_state(state)
        for name, tensor in self.holdings.tensors.items():
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
        for name, tensor in self.holdings.tensors.items():
            before = self._copies[id(tensor)]
            # In float64 it still is what it was, if rounding it gives that.
            narrow = tensor if tensor.is_quantized else tensor.detach().to(before.dtype)
            if not is_same(narrow, before):
                found[name] = tensor
            earlier, now = self._described[name][1], gradient_of(tensor)
            if now is None and earlier is None:
                continue
            if now is None or earlier is None or not is_same(now, self._gradients[id(earlier)]):
                found[f"grad of {name}"] = now
        for (name, _), (held, before) in zip(
            self.holdings.containers, self._containers, strict=True
        ):
            found.update(_changed_items(name, held, before))
        for (name, cell), (_, before) in zip(self.holdings.cells, self._cells, strict=True):
            now = content_of_cell(cell)
            if now is not before and isinstance(now, (*_PLAIN, torch.Tensor)):
                found[name] = now
        for name, held, before in self._globals:
            now = held.get(name)
            if now is not before and isinstance(now, (*_PLAIN, torch.Tensor)):
                found[name] = now
        return found

    def before(self, name: str) -> Any:
        """What `changes` would have called by this name; `MISSING` where nothing was."""
        owner = name.removeprefix("grad of ")
        tensor = self.holdings.tensors.get(owner)
        if tensor is not None and owner == name:
            return self._copies[id(tensor)]
        if tensor is not None:
            gradient = self._described[owner][1]
            return None if gradient is None else self._gradients[id(gradient)]
        return self._plain_before(name)

    def _plain_before(self, name: str) -> Any:
        for (path, _), (_, before) in zip(self.holdings.containers, self._containers, strict=True):
            items = before.items() if isinstance(before, dict) else enumerate(before)
            for key, value in items:
                if _item_path(path, key) == name:
                    return value
        variables = [(n, before) for n, _, before in self._globals]
        cells = zip(self.holdings.cells, self._cells, strict=True)
        variables += [(n, before) for (n, _), (_, before) in cells]
        return next((value for n, value in variables if n == name), MISSING)

    @contextlib.contextmanager
    def widened(self) -> Iterator[None]:
        """Within the block all its numbers that are not whole are float64, and restored so."""
        tensors = self.holdings.tensors
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


def gradient_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """Only a leaf keeps one; torch warns who asks others."""
    return tensor.grad if tensor.is_leaf else None


def _write(tensor: torch.Tensor, copy: torch.Tensor) -> None:
    mode = torch.inference_mode() if tensor.is_inference() else torch.no_grad()
    with mode:
        wide = wide_dtype(copy.dtype)
        fits = tensor.shape == copy.shape and tensor.dtype in (copy.dtype, wide)
        if fits and (storage_key(tensor) is None or tensor.stride() == copy.stride()):
            with contextlib.suppress(NotImplementedError):  # A layout that cannot be written.
                tensor.copy_(copy)
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
    """Plain values and tensors that were put where others were."""
    if isinstance(held, (set, deque)) or isinstance(held, list) != isinstance(before, list):
        return {}
    now = held if isinstance(held, dict) else dict(enumerate(held))
    then = before if isinstance(before, dict) else dict(enumerate(before))
    found = {}
    for key in [*now, *(key for key in then if key not in now)]:
        value, old = now.get(key), then.get(key)
        if value is old or not isinstance(value, (*_PLAIN, torch.Tensor)):
            continue
        if isinstance(value, _PLAIN) and type(value) is type(old) and value == old:
            continue
        found[_item_path(name, key)] = value
    return found


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
        held = Holdings(("", backend), ("", getattr(backend, "__dict__", None)))
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
