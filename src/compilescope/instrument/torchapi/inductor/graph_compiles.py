"""Compiles a graph, or a part of one, while torch.compile is at work; or lowers it through
AOTAutograd and Inductor, and hands out each stage as it comes by.

Through AOTAutograd, which makes functional ATen graphs of it, forward and backward apart; or a part
with TorchInductor.

Everything is taken from the compilation itself, through Inductor's own settings. Caches are passed
by: a hit would give back kernels, and hide the graphs and the IR that they were made of.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

import torch
from torch.fx import GraphModule

from compilescope.base.processes.interruptions import let_through
from compilescope.record.bodies import GraphStage

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


Direction = Literal["forward", "backward", "inference", ""]


class StageKeeper(Protocol):
    """Who wants the stages."""

    def keep_graph(self, stage: GraphStage, direction: Direction, module: GraphModule) -> None:
        """It is alive, and will be changed: take what you need of it now."""
        ...

    def keep_text(self, stage: GraphStage, direction: Direction, text: str) -> None: ...

    def keep_code(self, direction: Direction, text: str) -> None: ...

    def miss(self, stage: GraphStage, reason: str) -> None:
        """A stage that could not be had."""
        ...

    def before_lowering(self, direction: Direction) -> None:
        """All ATen graphs that are known by now have been kept. What it raises ends it."""
        ...


def lower(
    module: GraphModule,
    inputs: Sequence[Any],
    keeper: StageKeeper,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile to kernels. `options` are Inductor's own."""
    from torch._functorch import config as functorch_config
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx

    watch = _StageWatch(keeper)
    with config.patch(options or {}):
        patches = {**(options or {}), **watch.settings(config)}
    with functorch_config.patch(enable_autograd_cache=False):
        return compile_fx(  # type: ignore[no-any-return]
            module, list(inputs), inner_compile=watch.compile_inner, config_patches=patches
        )


def mode_options(mode: str | None) -> dict[str, Any]:
    """What torch.compile's `mode` means to Inductor."""
    return dict(torch._inductor.list_mode_options(mode)) if mode else {}


class _StageWatch:
    def __init__(self, keeper: StageKeeper) -> None:
        self._keeper = keeper
        self._direction: Direction = ""
        self._partitioned = False

    def settings(self, config: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"fx_graph_cache": False, "fx_graph_remote_cache": False}
        stages: tuple[tuple[str, GraphStage], ...] = (
            ("_pre_fusion_custom_pass", "ir_pre_fusion"),
            ("_post_fusion_custom_pass", "ir_post_fusion"),
        )
        for name, stage in stages:
            if hasattr(config, name):
                found[name] = self._fusion_pass(stage, getattr(config, name))
            else:
                self._keeper.miss(stage, f"this torch has no setting {name}")
        if hasattr(config, "custom_partitioner_fn"):
            found["custom_partitioner_fn"] = self._partitioner(config.custom_partitioner_fn)
        else:
            self._keeper.miss("aot_joint", "this torch has no setting custom_partitioner_fn")
        return {name: value for name, value in found.items() if hasattr(config, name)}

    def compile_inner(self, module: GraphModule, inputs: Any, **options: Any) -> Any:
        """In place of Inductor's own: it is called once for each graph that gets kernels."""
        from torch._inductor.compile_fx import compile_fx_inner

        direction: Direction = "forward"
        if options.get("is_backward"):
            direction = "backward"
        elif options.get("is_inference"):
            direction = "inference"
        if not self._partitioned:
            stage: GraphStage = f"aot_{direction}"  # type: ignore[assignment]
            self._keeper.keep_graph(stage, direction, module)
            self._keeper.before_lowering(direction)
        before, self._direction = self._direction, direction
        try:
            with _output_code_to(lambda text: self._keeper.keep_code(direction, text)):
                return compile_fx_inner(module, inputs, **options)
        finally:
            self._direction = before

    def _fusion_pass(self, stage: GraphStage, own_pass: Any) -> Callable[[Any], Any]:
        """The user's own pass first, where there is one."""

        def note(nodes: Any) -> Any:
            if own_pass is not None:
                nodes = own_pass(nodes)
            try:
                if stage == "ir_pre_fusion":
                    self._note_post_grad()
                self._keeper.keep_text(stage, self._direction, _printed_ir(nodes))
            except Exception as error:  # The border to torch: its printer is for debugging only.
                let_through(error)
                self._keeper.miss(stage, f"{type(error).__name__}: {error}")
            return nodes

        return note

    def _note_post_grad(self) -> None:
        from torch._inductor.virtualized import V

        graph = V.graph
        # The branches of a `torch.cond` are parts of their parent's graph.
        if getattr(graph, "parent", None) is None:
            self._keeper.keep_graph("post_grad", self._direction, graph.module)

    def _partitioner(self, own_partition: Any) -> Any:
        from torch._inductor.custom_graph_pass import CustomPartitionerFn

        watch = self

        class Partitioner(CustomPartitionerFn):  # type: ignore[misc]
            """Cuts the joint graph as Inductor would, and looks at both parts."""

            def __call__(self, gm: GraphModule, joint_inputs: Any, **options: Any) -> Any:
                watch._keeper.keep_graph("aot_joint", "", gm)
                cut = own_partition or _standard_partition
                forward, backward = cut(gm, joint_inputs, **options)
                watch._keeper.keep_graph("aot_forward", "forward", forward)
                watch._keeper.keep_graph("aot_backward", "backward", backward)
                watch._partitioned = True
                watch._keeper.before_lowering("forward")
                return forward, backward

            def uuid(self) -> None:
                return None

        return Partitioner()


def _standard_partition(gm: GraphModule, joint_inputs: Any, **options: Any) -> Any:
    from functorch.compile import min_cut_rematerialization_partition

    return min_cut_rematerialization_partition(gm, joint_inputs, **options)


@contextlib.contextmanager
def _output_code_to(receive: Callable[[str], None]) -> Iterator[None]:
    """Inductor offers its code to one listener; whoever listened before still does."""
    from torch._inductor.graph import GraphLowering

    before = GraphLowering.save_output_code

    def both(text: str) -> None:
        if before is not None:
            before(text)
        receive(text)

    GraphLowering.save_output_code = both
    try:
        yield
    finally:
        GraphLowering.save_output_code = before


def _printed_ir(nodes: Any) -> str:
    from torch._inductor.debug import DebugFormatter

    return str(DebugFormatter._write_ir(nodes))


def readable(module: GraphModule) -> str:
    """The graph as torch prints it, with dtypes, shapes, strides and devices."""
    return str(module.print_readable(print_output=False, include_stride=True, include_device=True))


def input_positions(module: GraphModule) -> dict[str, int]:
    """Inputs of an AOT graph -> which of the compiled function's inputs each is."""
    found = {}
    for node in module.graph.nodes:
        if node.op != "placeholder":
            continue
        position = getattr(node.meta.get("desc"), "idx", None)
        if isinstance(position, int):
            found[node.name] = position
    return found
