"""Compiles a graph, or a part of one, while torch.compile is at work.

Through AOTAutograd, which makes functional ATen graphs of it, forward and backward apart; or a part
with TorchInductor.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from torch.fx import GraphModule

Compiler = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]


def compile_through_aot(
    module: GraphModule,
    inputs: Sequence[Any],
    *,
    forward: Compiler,
    backward: Compiler,
    inference: Compiler,
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
) -> Callable[..., Any]:
    """What runs the graph. The backward graph is compiled when it is first needed.

    Writes to inputs are left to AOTAutograd, which does them after the graph has run: no graph
    that a compiler is given writes anything.
    """
    from torch._dynamo.backends.common import aot_autograd

    backend = aot_autograd(
        fw_compiler=_boxed(forward),
        bw_compiler=_boxed(backward),
        inference_compiler=_boxed(inference),
        decompositions=dict(decompositions) if decompositions else None,
        keep_inference_input_mutations=False,
    )
    compiled: Callable[..., Any] = backend(module, list(inputs))
    return compiled


def aten_graphs(
    module: GraphModule, inputs: Sequence[Any]
) -> dict[Literal["forward", "backward", "inference"], GraphModule]:
    """The same graphs without running or compiling anything, both at once where there are two."""
    from functorch.compile import default_partition
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch import config

    found: dict[Literal["forward", "backward", "inference"], GraphModule] = {}

    def cut(joint: GraphModule, joint_inputs: Any, **options: Any) -> Any:
        found["forward"], found["backward"] = parts = default_partition(
            joint, joint_inputs, **options
        )
        return parts

    def leave(part: GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        if "forward" not in found:
            found["inference"] = part
        return part.forward  # type: ignore[no-any-return]

    backend = aot_autograd(
        fw_compiler=_boxed(leave),
        bw_compiler=_boxed(leave),
        inference_compiler=_boxed(leave),
        partition_fn=cut,
        keep_inference_input_mutations=False,
    )
    with config.patch(enable_autograd_cache=False):
        backend(GraphModule(module, copy.deepcopy(module.graph)), list(inputs))
    return found


def _boxed(compiler: Compiler) -> Compiler:
    """AOTAutograd hands over its inputs in a list, so that they can be freed early."""
    from functorch.compile import make_boxed_func

    def compile_boxed(module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        boxed: Callable[..., Any] = make_boxed_func(compiler(module, inputs))
        return boxed

    return compile_boxed


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
