"""The values that nodes are noted with: reading them, and making them where there are none."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

_KEYS = ("example_value", "val")


def with_values(module: GraphModule, inputs: Sequence[Any] | None) -> GraphModule:
    """The graph itself where Dynamo or AOTAutograd made it, else a copy that was run without data.

    Where it cannot be run so, nodes stay without values: nobody can tell what they are.
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
    except Exception:  # The border to torch: it may refuse for any reason.
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
