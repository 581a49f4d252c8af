"""The state of a model, noted before a run and brought back after it, bit by bit."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

from compilescope.diff.copies import copied_tensors, not_copied, storage_key
from compilescope.diff.holdings import Holdings
from compilescope.diff.structure import MISSING
from compilescope.torchapi.trials.widening import wide_dtype

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class State:
    """What a model held when this was made."""

    def __init__(self, model: Any, args: Any = ()) -> None:
        self.holdings = Holdings(("", model), *_stateful(args))
        tensors = self.holdings.tensors
        self._copies = copied_tensors(tensors.values())
        self._described = {n: (t.requires_grad, gradient_of(t)) for n, t in tensors.items()}
        gradients = [gradient for _, gradient in self._described.values()]
        self._gradients = copied_tensors(g for g in gradients if g is not None)
        self._containers = [(held, _content(held)) for _, held in self.holdings.containers]
        self._cells = [(cell, _of_cell(cell)) for _, cell in self.holdings.cells]
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
        for held, content in self._containers:
            _refill(held, content)
        for cell, content in self._cells:
            if content is not cell and _of_cell(cell) is not content:
                cell.cell_contents = content
        for name, held, value in self._globals:
            if held.get(name) is not value:
                held[name] = value
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
            now = _of_cell(cell)
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


def is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal bit by bit, but for the kinds of NaN."""
    if one.shape != other.shape or one.dtype != other.dtype or one.layout != other.layout:
        return False
    if one.is_nested or one.layout is not torch.strided:
        return _same_parts(one, other)
    try:
        if torch.equal(one, other):
            return True
        if not (one.is_floating_point() or one.is_complex()):
            return False
        nan = one.isnan()
        return bool((nan == other.isnan()).all()) and torch.equal(
            one.masked_fill(nan, 0), other.masked_fill(nan, 0)
        )
    except (NotImplementedError, RuntimeError):
        return False  # A kind of tensor that knows no equality: it is held against the other side.


def _same_parts(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Of nested and sparse tensors."""
    try:
        if one.is_nested:
            ours, theirs = list(one.unbind()), list(other.unbind())
        elif one.layout is torch.sparse_coo:
            ours, theirs = ([t.coalesce().indices(), t.coalesce().values()] for t in (one, other))
        else:
            ours, theirs = [one.to_dense()], [other.to_dense()]
    except (NotImplementedError, RuntimeError):
        return False
    same_count = len(ours) == len(theirs)
    return same_count and all(is_same(a, b) for a, b in zip(ours, theirs, strict=True))


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


def _content(held: Any) -> Any:
    return dict(held) if isinstance(held, dict) else list(held)


def _refill(held: Any, content: Any) -> None:
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


def _of_cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return cell
