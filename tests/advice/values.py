"""What a program's compiled regions give and what its names hold at the end, as plain JSON.

Kept at once, for what a region gives may be changed later. Numbers stand as they are; of a large
tensor some of them and the sum.
"""

from __future__ import annotations

import math
import types
from typing import Any

import torch

from compilescope.measure.tensors.structure import Lazy, Opaque, take_apart

_MOST_NUMBERS = 512
_MOST_CALLS = 200
_MOST_LEAVES = 400


class Kept:
    """Filled as the program runs."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []

    def called(self, region: str, result: Any) -> None:
        if len(self._calls) < _MOST_CALLS:
            self._calls.append({"region": region, "gives": leaves_of(result)})

    def raised(self, region: str, error: BaseException) -> None:
        self._calls.append({"region": region, "raises": type(error).__name__})

    def told(self, names: dict[str, Any]) -> dict[str, Any]:
        held = {
            name: leaves_of(value, name)
            for name, value in names.items()
            if not name.startswith("_") and _is_data(value)
        }
        return {"calls": self._calls, "names": held}


def leaves_of(value: Any, root: str = "output") -> dict[str, Any]:
    """By path: what each leaf holds."""
    try:
        with torch.no_grad(), torch._C.DisableTorchFunction():
            if isinstance(value, torch.nn.Module):
                value = _module(value)
            elif isinstance(value, torch.optim.Optimizer):
                value = value.state_dict()
            leaves = take_apart(value, root).leaves
            return {path: _leaf(leaf) for path, leaf in list(leaves.items())[:_MOST_LEAVES]}
    except Exception as error:  # The border to objects of any kind.
        return {root: f"unreadable: {type(error).__name__}"}


def _is_data(value: Any) -> bool:
    if isinstance(value, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)):
        return False
    if isinstance(value, torch.nn.Module):
        return True
    return not callable(value) and not isinstance(value, torch.Generator)


def _module(module: torch.nn.Module) -> dict[str, Any]:
    """Its tensors, their gradients, and the plain attributes of all its parts."""
    module = getattr(module, "_orig_mod", module)
    found: dict[str, Any] = dict(module.state_dict())
    for name, parameter in module.named_parameters():
        found[f"{name}.grad"] = parameter.grad
    for name, part in module.named_modules():
        for attribute, value in vars(part).items():
            if not attribute.startswith("_") and isinstance(
                value, (bool, int, float, str, list, torch.Tensor, type(None))
            ):
                found[f"{name}.{attribute}"] = value
    return found


def _leaf(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return _tensor(leaf)
    if isinstance(leaf, bool) or leaf is None:
        return leaf
    if isinstance(leaf, (int, float)):
        return _number(leaf)
    if isinstance(leaf, (Lazy, Opaque)):
        return leaf.kind
    if type(leaf).__module__ == "numpy":
        return {"numpy": _tensor(torch.as_tensor(leaf))}
    return f"{type(leaf).__name__} {leaf!r}"[:200]


def _tensor(tensor: torch.Tensor) -> dict[str, Any]:
    kind = [str(tensor.dtype), list(tensor.shape), tensor.requires_grad]
    plain = tensor.detach()
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    if plain.is_complex():
        plain = torch.view_as_real(plain.resolve_conj())
    flat = plain.reshape(-1)
    if flat.numel() > _MOST_NUMBERS:
        total = flat.to(torch.float64).sum().reshape(1)
        flat = torch.cat([flat[: _MOST_NUMBERS - 1].to(torch.float64), total])
    return {"tensor": kind, "numbers": [_number(each) for each in flat.tolist()]}


def _number(number: float) -> Any:
    """JSON knows no NaN."""
    if isinstance(number, float) and not math.isfinite(number):
        return {"number": str(number)}
    return number
