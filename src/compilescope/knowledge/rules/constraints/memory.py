"""Bytes: of a tensor, and of the graph at its worst moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compilescope.knowledge.rules.constraints._samples import graph, node, placeholder, tensor
from compilescope.knowledge.rules.hardware.constraint import (
    Breach,
    Constraint,
    ConstraintRule,
    Sample,
    default_device,
    is_parameter,
    lacks_value,
    shown_op,
    shown_shape,
)
from compilescope.knowledge.rules.hardware.memory import Peak, peak_memory
from compilescope.knowledge.rules.hardware.operands import made
from compilescope.record.byte_counts import shown_bytes
from compilescope.record.device import Device
from compilescope.record.graph import Graph, Node


class MemoryConstraint(Constraint):
    """The graph must fit, and so must each tensor. Without any argument: as the generic device."""

    id = "memory"

    def __init__(
        self, max_memory_bytes: int | None = None, *, max_tensor_bytes: int | None = None
    ) -> None:
        for limit in (max_memory_bytes, max_tensor_bytes):
            if limit is not None and limit < 1:
                raise ValueError(f"a limit must be at least one byte, not {limit}")
        if max_memory_bytes is None and max_tensor_bytes is None:
            max_memory_bytes = default_device().memory.peak_bytes
        self.max_memory_bytes = max_memory_bytes
        self.max_tensor_bytes = max_tensor_bytes

    def check(self, graph: Graph) -> Iterator[Breach]:
        yield from super().check(graph)
        if self.max_memory_bytes is not None and graph.nodes:
            yield from self._peak(graph, self.max_memory_bytes)

    def check_node(self, node: Node) -> Iterable[Breach]:
        limit = self.max_tensor_bytes
        if limit is None or _fit(node, limit):
            return ()
        return self._check_tensors(node, limit)

    def _check_tensors(self, node: Node, limit: int) -> Iterator[Breach]:
        allowed = memory_words(None, limit)
        if lacks_value(node):
            yield self.cannot_tell(node, "its output is unknown", allowed)
        for value in dict.fromkeys(made(node)):
            if value.size_bytes is None:
                found = f"the size in bytes of {value.dtype} {shown_shape(value)} is unknown"
                yield self.cannot_tell(node, found, allowed)
            elif value.size_bytes > limit:
                yield self.breach(
                    node,
                    found=f"{shown_bytes(value.size_bytes)}: {value.dtype} {shown_shape(value)}",
                    allowed=allowed,
                    remedy=_smaller(node, value.size_bytes, limit),
                )

    def _peak(self, graph: Graph, limit: int) -> Iterator[Breach]:
        peak = peak_memory(graph)
        at = next((node for node in graph.nodes if node.name == peak.node), graph.nodes[0])
        allowed = memory_words(limit, None)
        if peak.peak_bytes > limit:
            yield self.breach(
                at,
                found=f"{'at least ' if peak.unknown else ''}{shown_bytes(peak.peak_bytes)} at "
                f"once, {shown_bytes(peak.inputs_bytes)} of it inputs and parameters",
                allowed=allowed,
                remedy=_fewer(graph, peak, limit),
            )
        elif peak.unknown:
            found = (
                f"at least {shown_bytes(peak.peak_bytes)}; the sizes of {len(peak.unknown)} values "
                f"are unknown, first {peak.unknown[0]}"
            )
            yield self.cannot_tell(at, found, allowed)


def memory_words(graph: int | None, one_tensor: int | None) -> str:
    """What is allowed, in the same words wherever it is said."""
    limits = ((one_tensor, "per tensor"), (graph, "per graph"))
    return ", ".join(f"at most {shown_bytes(size)} {of}" for size, of in limits if size is not None)


def _fit(node: Node, limit: int) -> bool:
    """Most nodes give a tensor of known size that is small enough."""
    return bool(node.outputs) and all(
        value.size_bytes is not None and value.size_bytes <= limit for value in made(node)
    )


def _smaller(node: Node, size: int, limit: int) -> str:
    parts = -(-size // limit)
    if is_parameter(node):
        return f"Split the layer into {parts} parts, or store it in a smaller number format."
    return f"Process it in {parts} pieces (`.chunk({parts})`), or use a smaller number format."


def _fewer(graph: Graph, peak: Peak, limit: int) -> str:
    shown = {node.name: shown_op(node) for node in graph.nodes}
    largest = ", ".join(
        f"{shown.get(name, name)} {shown_bytes(size)}" for name, size in peak.alive[:3]
    )
    if peak.inputs_bytes > limit:
        how = (
            "Inputs and parameters alone exceed the limit: use a smaller format, or several "
            "devices."
        )
    elif peak.saved_bytes > peak.peak_bytes // 2:
        how = (
            "Most of it is kept for the backward pass: use `torch.utils.checkpoint`, or a smaller "
            "batch."
        )
    else:
        how = "Use a smaller batch, or free what is no longer needed."
    return f"Largest at that point: {largest}. {how}"


def _make(device: Device) -> list[Constraint]:
    memory = device.memory
    if memory.peak_bytes is None and memory.tensor_bytes is None:
        return []
    return [MemoryConstraint(memory.peak_bytes, max_tensor_bytes=memory.tensor_bytes)]


def _graph(size: int | str) -> Graph:
    x = placeholder("x", tensor((size,), storage=0))
    return graph(x, node("mul", "aten.mul.Tensor", tensor((size,), storage=1), inputs=("x",)))


RULE = ConstraintRule(
    id="memory",
    title="Memory the device has",
    reads=("memory.peak_bytes", "memory.tensor_bytes"),
    make=_make,
    device='name = "x"\n[memory]\npeak_bytes = "1 KiB"\n',
    sample=Sample(bad=_graph(1000), good=_graph(100), unclear=_graph("s0")),
)
