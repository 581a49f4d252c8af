"""Nodes under `torch.vmap` and `torch.func` transforms: they only make sense one after the other.

A node there works on a value that a transform has wrapped, and which operator it leads to depends
on the transform. So the whole region is run on fake tensors, from where the first transform begins
to where it ends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node

from compilescope.processes.interruptions import let_through
from compilescope.torchapi.calls.rehearsal import DispatchedOperator, Noting, fake_cast, quietly
from compilescope.torchapi.calls.trial_sizes import TrialSizes, Unclear

_HOMES = ("torch._functorch", "torch._C._functorch")


def is_transform(node: Node) -> bool:
    home = getattr(node.target, "__module__", "") or ""
    return node.op == "call_function" and home.startswith(_HOMES)


def transformed_regions(nodes: Iterable[Node]) -> list[list[Node]]:
    regions: list[list[Node]] = []
    depth = 0
    for node in nodes:
        name = getattr(node.target, "__name__", "") if is_transform(node) else ""
        if name.endswith("_increment_nesting"):
            depth += 1
            if depth == 1:
                regions.append([])
        if depth:
            regions[-1].append(node)
        if name.endswith("_decrement_nesting"):
            depth -= 1
    return regions


def rehearse_region(
    nodes: list[Node],
    module: GraphModule,
    value_of: Callable[[Node], Any],
    sizes: TrialSizes,
    at: int,
) -> list[list[DispatchedOperator]]:
    """The operators of each node."""
    cast = fake_cast(sizes, at)
    inside = set(nodes)
    # What comes from outside must be made outside: else a transform takes it for its own.
    made: dict[Node, Any] = {
        source: cast.of(value_of(source))
        for node in nodes
        for source in node.all_input_nodes
        if source not in inside
    }
    seen: list[list[DispatchedOperator]] = []
    interpreter = torch.fx.Interpreter(module)
    with _layers_kept(), quietly(cast.fake):
        for node in nodes:
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), made.__getitem__)
            with Noting(lambda: None, cast.fake) as noting:
                try:
                    if node.op == "get_attr":
                        made[node] = cast.of(interpreter.fetch_attr(str(node.target)))
                    else:
                        run = getattr(interpreter, node.op)
                        made[node] = run(node.target, args, kwargs)
                except Exception as error:  # The border to torch: it may refuse for any reason.
                    let_through(error)
                    raise Unclear(f"{type(error).__name__}: {error}") from None
            seen.append(noting.seen)
    return seen


@contextlib.contextmanager
def _layers_kept() -> Iterator[None]:
    """A transform that was entered and not left would hold for the rest of the program."""
    functorch = torch._C._functorch
    depth = functorch.get_dynamic_layer_stack_depth()
    try:
        yield
    finally:
        if functorch.get_dynamic_layer_stack_depth() > depth:
            functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)
