"""What the installed torch knows of its operators: names, schemas, decompositions.

Operators are named as the portable graph names them: `aten.add_.Tensor`. None is an honest answer:
this process has not loaded the operator. `OperatorWatch` notes, while it is on, which operators run
on which devices.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from compilescope.model.graph import Call
from compilescope.rules.hardware.op_names import canonical


@functools.lru_cache(maxsize=4096)
def find_overload(op: str) -> Any | None:
    """torch's own object; None for what this process has not loaded, or is no overload."""
    parts = op.split(".")
    if len(parts) != 3:
        return None
    found: Any = torch.ops
    for part in parts:
        found = getattr(found, part, None)
        if found is None:
            return None
    return found if isinstance(found, torch._ops.OpOverload) else None


def is_higher_order(target: Any) -> bool:
    """An operator over operators, such as `cond`."""
    return isinstance(target, torch._ops.HigherOrderOperator)


def is_random(call: Call) -> bool | None:
    """Does it draw random numbers, called like this? None where the operator is not known."""
    overload = find_overload(call.op)
    if overload is None:
        return None
    if torch.Tag.nondeterministic_seeded not in overload.tags:
        return False
    given = call.constants
    if any(given.get(name) is False for name in ("train", "training")):
        return False
    chances = ["dropout_p", "dropout"]
    chances += ["p"] if "dropout" in call.op else []
    return not any(name in given and given[name] == 0 for name in chances)


def writes(op: str) -> bool | None:
    """Does it change what it is given?"""
    overload = find_overload(op)
    return None if overload is None else bool(overload._schema.is_mutable)


def written_arguments(overload: Any) -> list[int]:
    """The positions of the arguments that it changes."""
    return [
        number
        for number, argument in enumerate(overload._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


def is_view(op: str) -> bool:
    """Does it give another look at memory that is there already?"""
    overload = find_overload(op)
    if overload is None:
        return False
    results = [result.alias_info for result in overload._schema.returns]
    return bool(results) and all(info is not None and not info.is_write for info in results)


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


def decompositions_for(names: Iterable[str]) -> dict[Any, Callable[..., Any]]:
    """torch's core ATen set, and those of these operators of `aten` that this torch can take
    apart."""
    from torch._decomp import core_aten_decompositions, get_decompositions

    known = [getattr(torch.ops.aten, name) for name in names if hasattr(torch.ops.aten, name)]
    return {**core_aten_decompositions(), **get_decompositions(known)}


@contextlib.contextmanager
def plain_attention() -> Iterator[None]:
    """Attention is traced as matrix products and a softmax, not as one fused operator whose
    backward nobody can take apart."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:
        yield
        return
    with sdpa_kernel(SDPBackend.MATH):
        yield


class OperatorWatch(TorchDispatchMode):  # type: ignore[misc]
    """Counts the operators that run on these kinds of devices while it is on."""

    def __init__(self, devices: frozenset[str]) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()
        self._devices = devices

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        kinds = {
            leaf.device.type
            for leaf in tree_leaves((args, kwargs, result))
            if isinstance(leaf, torch.Tensor)
        }
        if kinds and kinds <= self._devices:
            self.seen[str(func)] += 1
        return result


def is_compiled(function: Any) -> bool:
    """Was it made by torch.compile? Dynamo runs nothing compiled while operators are watched."""
    return any(
        hasattr(function, mark)
        for mark in ("_torchdynamo_orig_callable", "_orig_mod", "get_compiler_config")
    )
