"""The copier: what a run may write into is copied first, so that every run starts from the same.

Invariant: copies share memory among themselves as the originals do. Two arguments that are one
tensor, or views of one storage, stay so: what is written through one is read through the other.
Strides stay too, for kernels look at them; a parameter stays a parameter.
"""

from __future__ import annotations

import copy
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from compilescope.base.errors import ToolError
from compilescope.measure.tensors.structure import Lazy, argument_leaves, tensors_of

Dtypes = Callable[[torch.dtype], torch.dtype]
Key = tuple[str, int]


def same_dtype(dtype: torch.dtype) -> torch.dtype:
    return dtype


def storage_key(tensor: torch.Tensor) -> Key | None:
    """A name for the memory that it lies in; None where it has none of its own."""
    try:
        address = tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError, AttributeError):
        return None  # Sparse, a subclass, or without data.
    return (str(tensor.device), address) if address else None


def copied_tensors(
    tensors: Iterable[torch.Tensor], dtypes: Dtypes = same_dtype, *, whole: bool = True
) -> dict[int, torch.Tensor]:
    """By the id of the original. None requires a gradient.

    `whole`: all the memory around a tensor is copied with it, which a program can reach by
    `as_strided`. Else only memory that several of the tensors lie in is: a value in the middle of a
    graph is often a small view of a large one.
    """
    originals = {id(tensor): tensor for tensor in tensors}
    keys = {name: _memory_of(tensor) for name, tensor in originals.items()}
    sharing = Counter(keys.values())
    widest = _widest_storages((keys[name], tensor) for name, tensor in originals.items())
    storages: dict[tuple[Any, ...], torch.UntypedStorage] = {}
    made = {}
    for name, tensor in originals.items():
        key, wanted = keys[name], dtypes(tensor.dtype)
        if key is None:
            made[name] = _cloned(tensor, wanted)
        elif whole or sharing[key] > 1:
            made[name] = _over_storage(tensor, widest[key], wanted, storages)
        else:
            made[name] = _alone(tensor).to(wanted)
    return made


def copied_values(values: Sequence[Any]) -> list[Any]:
    """The same values with copies of the tensors among them, which have no history and are no
    inference tensors. One tensor that is there twice is one tensor in the copy."""
    with torch.no_grad(), torch.inference_mode(False):
        tensors = {id(value): value for value in values if isinstance(value, torch.Tensor)}
        made = copied_tensors(tensors.values(), whole=False)
        copies = {name: _like(made[name], tensor, False) for name, tensor in tensors.items()}
    return [copies.get(id(value), value) for value in values]


def _memory_of(tensor: torch.Tensor) -> Key | None:
    """Where its storage is; None for what is not copied by its memory."""
    if is_lazy(tensor):
        raise ToolError(
            "The model has uninitialized weights.", hint="Call it once before comparing it."
        )
    return storage_key(tensor) if is_plain(tensor) else None


def _widest_storages(
    tensors: Iterable[tuple[Key | None, torch.Tensor]],
) -> dict[Key, torch.UntypedStorage]:
    """Two storages may begin at one address, over arrays of numpy: the longer holds both."""
    found: dict[Key, torch.UntypedStorage] = {}
    for key, tensor in tensors:
        if key is not None:
            storage = tensor.untyped_storage()
            known = found.get(key)
            if known is None or storage.nbytes() > known.nbytes():
                found[key] = storage
    return found


def _cloned(tensor: torch.Tensor, wanted: torch.dtype) -> torch.Tensor:
    made = tensor.detach().clone()
    return made if wanted is made.dtype or made.is_quantized else made.to(wanted)


def _over_storage(
    tensor: torch.Tensor,
    storage: torch.UntypedStorage,
    wanted: torch.dtype,
    storages: dict[tuple[Any, ...], torch.UntypedStorage],
) -> torch.Tensor:
    """A view of the copy of the storage, as the tensor is one of the storage."""
    place = (
        str(tensor.device),
        storage.data_ptr(),
        None if wanted is tensor.dtype else tensor.dtype,
    )
    if place not in storages:
        if wanted is tensor.dtype:
            storages[place] = storage.clone()
        else:
            line = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            storages[place] = line.set_(storage).to(wanted).untyped_storage()
    shell = torch.empty(0, dtype=wanted, device=tensor.device)
    return shell.set_(storages[place], tensor.storage_offset(), tensor.size(), tensor.stride())


def _alone(tensor: torch.Tensor) -> torch.Tensor:
    """With its strides, unless several of its elements are one place (an expanded tensor): that
    cannot be written to."""
    flat = tensor.detach()
    sizes = zip(tensor.stride(), tensor.shape, strict=True)
    if any(step == 0 and size > 1 for step, size in sizes):
        return flat.clone()
    made = torch.empty_strided(
        tensor.size(), tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
    return made.copy_(flat)


def is_plain(tensor: torch.Tensor) -> bool:
    """Memory, sizes and strides are all there is to it."""
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
        and tensor.layout is torch.strided
        and not (tensor.is_quantized or tensor.is_nested or tensor.is_conj() or tensor.is_neg())
        and tensor.device.type != "meta"
    )


class CopiedArguments:
    """The arguments of a call, to be copied anew for each side."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], own: Iterable[Any]) -> None:
        self.args = args
        self.kwargs = kwargs
        self.shared: list[str] = []
        """Arguments that cannot be copied: both sides get the same object."""
        self._kept = {id(thing): thing for thing in own}
        """What belongs to the model: an argument that is one of its weights stays that weight."""
        self._own = {storage_key(t) for t in own if isinstance(t, torch.Tensor)} - {None}
        self._refuse_lazy()

    def _refuse_lazy(self) -> None:
        for path, leaf in argument_leaves(self.args, self.kwargs).items():
            if isinstance(leaf, Lazy):
                raise ToolError(
                    f"The argument {path} is a {leaf.kind}: the first side would consume it.",
                    hint="Pass a list or a tensor instead.",
                )

    def tensors(self) -> list[torch.Tensor]:
        return list(tensors_of((self.args, self.kwargs)))

    def copied(
        self, dtypes: Dtypes = same_dtype, *, gradients: bool = False, forget: bool = False
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """`gradients`: numbers that are not whole require one, whether they did or not. `forget`:
        those that lie in the originals already are left out."""
        foreign = self._foreign()
        held = {} if forget else _gradients_in(foreign)
        made = copied_tensors([*foreign, *held.values()], dtypes)
        copies = {id(t): _like(made[id(t)], t, gradients) for t in foreign}
        for owner, gradient in held.items():
            copies[owner].grad = made[id(gradient)]
        return self._with(copies)

    def remade(
        self, make: Callable[[torch.Tensor], torch.Tensor]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same with other tensors. Two that are one piece of memory stay so."""
        made: dict[tuple[Any, ...], torch.Tensor] = {}
        found: dict[int, torch.Tensor] = {}
        for tensor in self._foreign():
            piece = _piece(tensor)
            other = made.get(piece)
            new = make(tensor) if other is None else other.detach().view_as(other)
            made.setdefault(piece, new)
            found[id(tensor)] = _like(new, tensor, False)
        for owner, gradient in _gradients_in(self._foreign()).items():
            if found[owner].is_leaf and found[owner].shape == gradient.shape:
                found[owner].grad = make(gradient)
        return self._with(found)

    def _foreign(self) -> list[torch.Tensor]:
        """The tensors that are not the model's own, each once."""
        found = {id(t): t for t in self.tensors() if storage_key(t) not in self._own}
        return list(found.values())

    def _with(self, tensors: dict[int, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        memo: dict[int, Any] = {id(tensor): tensor for tensor in self.tensors()}
        memo |= self._kept | tensors
        for thing in not_copied((self.args, self.kwargs)):
            memo[id(thing)] = thing
        args = tuple(self._one(arg, f"args[{i}]", memo) for i, arg in enumerate(self.args))
        kwargs = {k: self._one(arg, k, memo) for k, arg in self.kwargs.items()}
        return args, kwargs

    def _one(self, value: Any, name: str, memo: dict[int, Any]) -> Any:
        try:
            return copy.deepcopy(value, memo)
        except Exception:  # The border to classes of the user's, which may refuse in any way.
            if name not in self.shared:
                self.shared.append(name)
            return value


def gradient_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """Only a leaf keeps one; torch warns who asks others."""
    return tensor.grad if tensor.is_leaf else None


def _gradients_in(tensors: Iterable[torch.Tensor]) -> dict[int, torch.Tensor]:
    """What an earlier `backward` left in them, by the id of the tensor: clipping reads it."""
    found = ((id(tensor), gradient_of(tensor)) for tensor in tensors)
    return {owner: gradient for owner, gradient in found if gradient is not None}


def _piece(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Equal for tensors that show the same memory in the same way."""
    key = storage_key(tensor) if is_plain(tensor) else None
    if key is None:
        return (id(tensor),)
    shape = (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
    return (key, shape, tensor.dtype, isinstance(tensor, torch.nn.Parameter))


def _like(made: torch.Tensor, original: torch.Tensor, gradients: bool) -> torch.Tensor:
    differentiable = made.is_floating_point() or made.is_complex()
    wanted = differentiable and (original.requires_grad or gradients)
    if isinstance(original, torch.nn.Parameter):
        return torch.nn.Parameter(made, requires_grad=wanted)
    return made.requires_grad_(wanted) if wanted else made


_STATEFUL = (torch.nn.Module, torch.optim.Optimizer, torch.Generator, types.FunctionType)


def not_copied(value: Any) -> Iterator[Any]:
    """Modules, optimizers, generators of random numbers and functions among the arguments: they
    are state. What is compiled for one optimizer serves no copy of it (2.13)."""
    waiting, seen = [value], set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, torch.Tensor):
            continue
        seen.add(id(item))
        if isinstance(item, _STATEFUL):
            yield item
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, (list, tuple, set, frozenset)):
            waiting += item
        elif hasattr(item, "__dict__") and not isinstance(item, (type, types.ModuleType)):
            waiting += vars(item).values()
