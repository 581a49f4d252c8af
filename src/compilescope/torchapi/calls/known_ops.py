"""The operators that the installed torch knows, by the names that devices use."""

from __future__ import annotations

import functools
from typing import Any

import torch

from compilescope.rules.hardware.op_names import canonical


@functools.lru_cache(maxsize=1)
def known_operators() -> frozenset[str]:
    """`aten.add.Tensor`, `aten.relu.default`, of every library that is loaded."""
    names = getattr(torch._C, "_dispatch_get_all_op_names", None)
    if names is None:
        return frozenset()
    return frozenset(_dotted(name) for name in names())


def _dotted(name: str) -> str:
    library, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    return f"{library}.{base}.{overload or 'default'}"


def is_torch_name(name: str) -> bool:
    """Does Python find it: `torch.nn.functional.grid_sample`, a method such as `view`?"""
    if "." not in name:
        return hasattr(torch.Tensor, name)
    found: Any = torch
    first, *parts = name.split(".")
    for part in parts:
        found = getattr(found, part, None)
    return first == "torch" and bool(parts) and found is not None


def is_composite(op: str) -> bool:
    """Is it, with all its overloads, made of other operators? Then no ATen graph ever holds it."""
    asks = getattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", None)
    name = canonical(op)
    family = [known for known in known_operators() if f"{known}.".startswith(f"{name}.")]
    family = [known for known in family if not known.endswith("out")]
    if asks is None:
        return False
    return bool(family) and all(
        asks(_coloned(known), "CompositeImplicitAutograd") for known in family
    )


def _coloned(op: str) -> str:
    library, base, overload = op.split(".", 2)
    return f"{library}::{base}" + (f".{overload}" if overload != "default" else "")


def argument_names(op: str) -> frozenset[str]:
    """Of all overloads of an operator `aten.convolution`."""
    library, name, *_ = (*canonical(op).split("."), "")
    packet: Any = getattr(getattr(torch.ops, library, None), name, None)
    if packet is None:
        return frozenset()
    overloads = [getattr(packet, overload) for overload in packet.overloads()]
    return frozenset(a.name for overload in overloads for a in overload._schema.arguments)
