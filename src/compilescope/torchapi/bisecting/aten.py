"""The ATen graphs that AOTAutograd makes of a part, with the values of a real run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch.fx import GraphModule

from compilescope.torchapi.bisecting.ambient import Ambient
from compilescope.torchapi.bisecting.compiling import compile_part
from compilescope.torchapi.bisecting.copies import copy_values
from compilescope.torchapi.bisecting.evaluating import Occasion, run_part
from compilescope.torchapi.bisecting.parts import Part
from compilescope.torchapi.bisecting.recording import RecordedCall, RecordedGraph, copy_module
from compilescope.torchapi.inductor.aot_compile import compile_through_aot


@dataclass
class AtenGraphs:
    """Forward (or inference) and backward."""

    forward: RecordedGraph | None = None
    backward: RecordedGraph | None = None


def aten_graphs(part: Part, occasion: Occasion, decompositions: Any = None) -> AtenGraphs | None:
    """None where AOTAutograd does not take the part."""
    found = AtenGraphs()

    def keep(name: str) -> Callable[..., Any]:
        def compiler(module: GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
            graph = RecordedGraph(0, copy_module(module))
            setattr(found, name, graph)

            def run(*values: Any) -> Any:
                graph.calls.append(RecordedCall(copy_values(values), Ambient.now()))
                return module(*values)

            return run

        return compiler

    def backend(module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return compile_through_aot(
            module,
            inputs,
            forward=keep("forward"),
            backward=keep("backward"),
            inference=keep("forward"),
            decompositions=decompositions,
        )

    try:
        run_part(compile_part(backend, part, occasion), occasion)
    except Exception:  # The border to torch, which may refuse a part in any way.
        return None
    return found


def aten_names(graph: RecordedGraph | None) -> tuple[str, ...]:
    """Its operators, in order."""
    if graph is None:
        return ()
    nodes = [n for n in graph.module.graph.nodes if n.op == "call_function"]
    names = [str(node.target) for node in nodes]
    return tuple(name for name in names if "getitem" not in name)


def own_compiler(backend: Any, stage: str) -> Callable[..., Any] | None:
    """What a backend made by `aot_autograd` gives ATen graphs to; None where it is another kind."""
    given = getattr(backend, "kwargs", None)
    if not isinstance(given, dict) or "fw_compiler" not in given:
        return None
    compiler = given["fw_compiler"]
    if stage == "backward":
        compiler = given.get("bw_compiler") or compiler
    return _unboxed(compiler)


def own_decompositions(backend: Any) -> Any:
    given = getattr(backend, "kwargs", None)
    if isinstance(given, dict):
        found = given.get("decompositions")
    else:
        found = getattr(backend, "decompositions", None)  # An adapter has them as a setting.
    return found() if callable(found) else found


def _unboxed(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """AOTAutograd hands over inputs in a list; graphs of ours are called plainly."""

    def compile_plain(module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        function: Callable[..., Any] = compiler(module, list(inputs))
        if not getattr(function, "_boxed_call", False):
            return function

        def run(*values: Any) -> Any:
            return function(list(values))

        return run

    return compile_plain
