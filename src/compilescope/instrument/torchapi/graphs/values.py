"""The fake tensors and sizes in the `meta` of a live graph's nodes (`example_value`, `val`).

Where a graph came without them, a copy is run on fake tensors. Sizes may be symbols. Asking a
symbol for its value (`int(size)`) would fix it, and the graph with it: only hints are read.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule
from torch.utils._pytree import tree_leaves, tree_map_only

from compilescope.base.processes.interruptions import let_through


def leaves_of(tree: Any) -> list[Any]:
    return list(tree_leaves(tree))


def map_tensors(function: Callable[[torch.Tensor], torch.Tensor], tree: Any) -> Any:
    return tree_map_only(torch.Tensor, function, tree)


def size_hint(size: Any) -> int | None:
    """What it was when the graph was made; None for a size that only the running program knows."""
    if type(size) is int:
        return size
    node = getattr(size, "node", None)
    try:
        hint = node.hint if node is not None else None
    except Exception as error:
        # torch refuses for sizes that depend on data, each version in its own way.
        let_through(error)
        return None
    return hint if type(hint) is int else None


def symbol_of(value: Any) -> str | None:
    """The symbol that a size is, and nothing more."""
    expression = getattr(getattr(value, "node", None), "expr", None)
    return str(expression) if getattr(expression, "is_Symbol", False) else None


def symbols_in(value: Any) -> set[str]:
    """All symbols that sizes and strides are made of."""
    found: set[str] = set()
    for size in _sizes(value):
        expression = getattr(getattr(size, "node", None), "expr", None)
        found.update(map(str, getattr(expression, "free_symbols", ())))
    return found


def _sizes(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield from value.shape
        if value.layout is torch.strided:
            yield from value.stride()
            yield value.storage_offset()
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _sizes(item)
    else:
        yield value


_KEYS = ("example_value", "val")


def with_values(module: GraphModule, inputs: Sequence[Any] | None) -> GraphModule:
    """The graph itself where Dynamo or AOTAutograd made it, else a copy that was run without data.

    Where it cannot be run so, its nodes have no values.
    """
    computing = [node for node in module.graph.nodes if node.op.startswith("call_")]
    if inputs is None or not computing or any(_has_value(node) for node in computing):
        return module
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp

    copied = GraphModule(module, copy.deepcopy(module.graph))
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        FakeTensorProp(copied, mode).propagate(*inputs)
    except Exception as error:  # The border to torch: it may refuse for any reason.
        let_through(error)
        return module
    return copied


def has_symbols(module: GraphModule) -> bool:
    """Does it have inputs of dynamic size? Dynamo passes the sizes themselves along with those."""
    inputs = (node.meta.get("example_value") for node in module.graph.nodes if not node.args)
    return any(isinstance(value, torch.SymInt) for value in inputs)


@contextlib.contextmanager
def leaving_no_trace(module: GraphModule) -> Iterator[None]:
    """Sizes that are symbols may be compared within; nothing that is learnt so becomes a guard."""
    environment = _shape_environment(module)
    with contextlib.ExitStack() as stack:
        for name in ("suppress_guards", "ignore_fresh_unbacked_symbols"):
            make = getattr(environment, name, None)
            if make is not None:
                stack.enter_context(make())
        yield


def _shape_environment(module: GraphModule) -> Any:
    for node in module.graph.nodes:
        for key in _KEYS:
            mode = getattr(node.meta.get(key), "fake_mode", None)
            if mode is not None:
                return mode.shape_env
    return None


def _has_value(node: torch.fx.Node) -> bool:
    return any(key in node.meta for key in _KEYS)
