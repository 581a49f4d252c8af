"""From operators as torch dispatched them to the calls of the portable graph."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.utils import _pytree as pytree

from compilescope.model.graph import Call, TensorInfo
from compilescope.torchapi.calls.rehearsal import DispatchedOperator
from compilescope.torchapi.calls.trial_sizes import TrialSizes
from compilescope.torchapi.graphs.fx import tensor_info


def is_operator(func: Any) -> bool:
    """What is asked of a tensor itself (its device, its symbolic sizes) is none."""
    return func.namespace != "prim" and not func._opname.startswith("sym_")


def own_call(node: Node) -> tuple[Call, ...]:
    """A node of an ATen graph is its own call."""
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), _noted)
    result = node.meta.get("val", node.meta.get("example_value"))
    func: Any = node.target
    if not is_operator(func):
        return ()
    constants = {
        name: _plain(value) for name, value in _arguments(func, args, kwargs) if not _has(value)
    }
    given = tuple(tensor_info(leaf) for leaf in _leaves((args, kwargs)))
    return (Call(str(func), given, tuple(map(tensor_info, _leaves(result))), constants),)


def noted_calls(
    first: Sequence[DispatchedOperator], second: Sequence[DispatchedOperator], sizes: TrialSizes
) -> tuple[Call, ...] | None:
    """None where another size leads to other operators: then nobody can tell which it will be."""
    first, second = ([s for s in seen if is_operator(s.op)] for seen in (first, second))
    if [seen.op for seen in first] != [seen.op for seen in second]:
        return None
    return tuple(_call(one, two, sizes) for one, two in zip(first, second, strict=True))


def _call(one: DispatchedOperator, two: DispatchedOperator, sizes: TrialSizes) -> Call:
    constants = {}
    others = _arguments(two.op, two.args, two.kwargs)
    for (name, value), (_, other) in zip(
        _arguments(one.op, one.args, one.kwargs), others, strict=True
    ):
        if not _has(value):
            constants[name] = _plain(value, other, sizes)
    return Call(
        str(one.op),
        _infos((one.args, one.kwargs), (two.args, two.kwargs), sizes),
        _infos(one.result, two.result, sizes),
        constants,
    )


def _arguments(func: Any, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    """By the names of the operator's schema, with what it takes by default."""
    return [
        (
            argument.name,
            args[number]
            if number < len(args)
            else kwargs.get(argument.name, argument.default_value),
        )
        for number, argument in enumerate(func._schema.arguments)
    ]


def _infos(one: Any, two: Any, sizes: TrialSizes) -> tuple[TensorInfo, ...]:
    if one is two:
        return tuple(_info(leaf, leaf, sizes) for leaf in _leaves(one))
    return tuple(
        _info(first, second, sizes)
        for first, second in zip(_leaves(one), _leaves(two), strict=False)
    )


def _info(one: torch.Tensor, two: torch.Tensor, sizes: TrialSizes) -> TensorInfo:
    shape = tuple(map(sizes.shown, one.shape, two.shape))
    size_bytes: int | None = one.element_size()
    for size in shape:
        size_bytes = None if size_bytes is None or isinstance(size, str) else size_bytes * size
    return TensorInfo(
        shape=shape,
        dtype=_dtype(one.dtype),
        stride=tuple(map(sizes.shown, one.stride(), two.stride())),
        device=str(one.device),
        size_bytes=size_bytes,
    )


@functools.lru_cache(maxsize=64)
def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _plain(value: Any, other: Any = None, sizes: TrialSizes | None = None) -> Any:
    if value is None or isinstance(value, (bool, str)) or type(value) is float:
        return value
    if type(value) is int:
        return sizes.shown(value, other) if sizes is not None and type(other) is int else value
    if isinstance(value, (list, tuple)):
        others = other if isinstance(other, (list, tuple)) else [None] * len(value)
        return [_plain(item, twin, sizes) for item, twin in zip(value, others, strict=False)]
    return str(value).removeprefix("torch.")


def _leaves(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _has(value: Any) -> bool:
    """Does it hold tensors?"""
    if isinstance(value, (list, tuple)):
        return any(map(_has, value))
    return isinstance(value, torch.Tensor)


def _noted(node: Node) -> Any:
    return node.meta.get("example_value", node.meta.get("val"))
