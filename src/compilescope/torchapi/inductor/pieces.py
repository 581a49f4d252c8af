"""Compiles a part of a graph with TorchInductor, while torch.compile is at work on the whole."""

from __future__ import annotations

import contextlib
import copy
import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch.fx import GraphModule


@contextlib.contextmanager
def _without_talk_of_saving() -> Iterator[None]:
    """It warns where the result cannot be saved to disk, which nobody asked for."""
    logger = logging.getLogger("torch._inductor.standalone_compile")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def compile_with_inductor(module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """What runs the graph through Inductor's kernels; `inputs` may be without data.

    Random numbers stay those of eager mode.
    """
    import torch
    import torch._inductor
    import torch._inductor.config as config

    own = GraphModule(module, copy.deepcopy(module.graph), type(module).__name__)
    for node in own.graph.nodes:
        # It looks here for the symbols that sizes are made of (torch 2.13).
        if "val" in node.meta:
            node.meta = {**node.meta, "example_value": node.meta["val"]}
    compile_standalone = torch._inductor.standalone_compile
    options: dict[str, Any] = {"dynamic_shapes": "from_graph"}
    if "donate_graph_module" in inspect.signature(compile_standalone).parameters:
        options["donate_graph_module"] = True
    with torch.no_grad(), config.patch(fallback_random=True), _without_talk_of_saving():
        artifact = compile_standalone(own, list(inputs), **options)

    def run(*args: Any) -> Any:
        with torch.no_grad():
            return artifact(*args)

    return run
