"""Lowers a Dynamo graph through AOTAutograd: functional ATen graphs, forward and backward apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

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


def _boxed(compiler: Compiler) -> Compiler:
    """AOTAutograd hands over its inputs in a list, so that they can be freed early."""
    from functorch.compile import make_boxed_func

    def compile_boxed(module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        boxed: Callable[..., Any] = make_boxed_func(compiler(module, inputs))
        return boxed

    return compile_boxed
