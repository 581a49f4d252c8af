"""What an operator's schema tells: does it draw random numbers, write, or only look elsewhere?

Operators are named as the portable graph names them: `aten.add_.Tensor`.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from compilescope.model.graph import Call


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
