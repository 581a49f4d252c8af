"""The variables around a step, and what their tensors hold: kept, or widened to float64."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import torch

_TORCH = os.path.dirname(torch.__file__) + os.sep
_MOST_EACH = 1 << 20
"""Numbers of one tensor that are kept: of a larger one as many, evenly spread. Chosen: 4 MiB of
float32."""
_MOST_ALL = 1 << 25
"""Numbers of all tensors. Chosen: 128 MiB of float32, which a disk takes in a second."""
MOST_ITEMS = 64
"""Of one container. Chosen: a batch has a few tensors; a dataset in a list is not the step's."""
_DEEPEST = 2
"""Containers and objects within a variable. Chosen: `batch["x"]` and `trainer.state.loss`; deeper
ones hold what the step works with, not what it computed."""
_WRAPPED = "_orig_mod."
"""What `torch.compile(module)` puts into the names of parameters."""


def variables_around(frame: FrameType, *, libraries: bool = False) -> dict[str, Any]:
    """Of the frame and those that called it, the nearest counts."""
    apart = _TORCH if libraries else "site-packages"
    found: dict[str, Any] = {}
    here: FrameType | None = frame
    while here is not None:
        if apart not in here.f_code.co_filename:
            for name, value in list(here.f_locals.items()):
                if not name.startswith("__"):
                    found.setdefault(name, value)
        here = here.f_back
    return found


def _tensors_around(frame: FrameType) -> dict[str, torch.Tensor]:
    """By where they are found, each once: `loss`, `model.layers.0.weight`, its gradient."""
    found: dict[str, torch.Tensor] = {}
    seen: set[int] = set()
    for name, value in variables_around(frame).items():
        for path, tensor in _walk(value, name, 0):
            if id(tensor) not in seen and _is_comparable(tensor):
                seen.add(id(tensor))
                found.setdefault(path.replace(_WRAPPED, ""), tensor)
    return found


def keep_tensors(frame: FrameType, file: Path, returned: Mapping[str, torch.Tensor]) -> None:
    """Those and what compiled calls returned."""
    tensors = {**_tensors_around(frame), **returned}
    most = max(1024, min(_MOST_EACH, _MOST_ALL // max(1, len(tensors))))
    kept = {}
    for path, tensor in tensors.items():
        # A result that a CUDA graph has overwritten since cannot be read any more.
        with contextlib.suppress(RuntimeError), torch.no_grad():
            kept[path] = _spread(tensor.detach(), most).cpu()
    part = file.with_suffix(".part")
    torch.save(kept, part)
    part.replace(file)


def widen_weights(frame: FrameType) -> None:
    for tensor in _tensors_around(frame).values():
        _widen_weight(tensor)


def _widen_weight(tensor: torch.Tensor) -> None:
    """What gradients are computed for becomes float64, in place: autograd wants them alike."""
    wide = tensor.dtype == torch.float64
    if tensor.is_leaf and tensor.is_floating_point() and tensor.requires_grad and not wide:
        tensor.data = tensor.data.double()
        tensor.grad = None if tensor.grad is None else tensor.grad.double()


def widen_before_buckets() -> None:
    """DistributedDataParallel makes buckets and hooks for the weights that it finds: one that
    becomes another afterwards is not averaged any more (torch 2.13)."""
    kind: Any = torch.nn.parallel.DistributedDataParallel
    make = kind.__init__

    @functools.wraps(make)
    def widen_and_make(self: Any, module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
        for parameter in module.parameters():
            _widen_weight(parameter)
        make(self, module, *args, **kwargs)

    kind.__init__ = widen_and_make


def _spread(tensor: torch.Tensor, most: int) -> torch.Tensor:
    count = tensor.numel()
    if count <= most:
        return tensor.clone()
    return tensor.reshape(-1)[:: -(-count // most)].clone()


def _is_comparable(tensor: torch.Tensor) -> bool:
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    return plain and tensor.layout is torch.strided and not tensor.is_quantized


def _walk(value: Any, path: str, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield path, value
        if value.is_leaf and value.grad is not None:
            yield f"gradient of {path}", value.grad
    elif isinstance(value, torch.optim.Optimizer):
        for place, group in enumerate(value.param_groups):
            for number, parameter in enumerate(group["params"]):
                yield from _walk(parameter, f"{path}[{place}][{number}]", depth)
    elif isinstance(value, torch.nn.Module):
        for name, parameter in value.named_parameters():
            yield from _walk(parameter, f"{path}.{name}", depth)
        for name, buffer in value.named_buffers():
            yield f"{path}.{name}", buffer
    elif depth < _DEEPEST and isinstance(value, Mapping) and len(value) <= MOST_ITEMS:
        for key, each in list(value.items()):
            yield from _walk(each, f"{path}[{key!r}]", depth + 1)
    elif depth < _DEEPEST and isinstance(value, (list, tuple)) and len(value) <= MOST_ITEMS:
        for number, each in enumerate(value):
            yield from _walk(each, f"{path}[{number}]", depth + 1)
    elif depth < _DEEPEST and _is_plain_object(value):
        for name, each in list(vars(value).items())[:MOST_ITEMS]:
            yield from _walk(each, f"{path}.{name}", depth + 1)
    elif depth < _DEEPEST and not isinstance(value, (type, ModuleType)):
        # A library's trainer: what it trains is the program's, whatever else it holds.
        for name, each in attributes_of(value).items():
            if isinstance(each, (torch.nn.Module, torch.optim.Optimizer)):
                yield from _walk(each, f"{path}.{name}", depth + 1)


def attributes_of(value: Any) -> dict[str, Any]:
    held: Any = None
    with contextlib.suppress(Exception):  # The object's own code may answer, with anything.
        held = value.__dict__
    return dict(held) if isinstance(held, dict) else {}


def _is_plain_object(value: Any) -> bool:
    """Of the user's own: a trainer, a state."""
    module = type(value).__module__.partition(".")[0]
    return hasattr(value, "__dict__") and not isinstance(value, type) and module == "__main__"
