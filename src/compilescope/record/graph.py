"""The portable graph: what constraints and views read, never a live GraphModule."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from compilescope.record.stack import Frame

T = TypeVar("T")


class TensorInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a tensor without its numbers."""

    shape: tuple[int | str, ...]
    """A string is a symbolic size."""
    dtype: str
    stride: tuple[int | str, ...] | None = None
    device: str = ""
    size_bytes: int | None = None
    """None where a size is symbolic."""
    storage: int | None = None
    """Which of the graph's storages it lies in: views share their base's. None: not known."""
    storage_bytes: int | None = None
    requires_grad: bool = False


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """An ATen operator that a node calls, and with what."""

    op: str
    """The overload: `aten.convolution.default`."""
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    constants: dict[str, Any] = {}
    """Arguments that are no tensors, by the names that the operator's schema gives them."""


class Node(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operation."""

    name: str
    op: str
    """FX's word: placeholder, call_function, call_method, call_module, get_attr, output."""
    target: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    frame: Frame | None = None
    """The user's line it came from."""
    source: str = ""
    """For a placeholder: what the user passed, as Dynamo writes it."""
    alias: str = ""
    """The name by which torch's backward graph knows it, where that is another."""
    stack: int | None = None
    """Which of the graph's stacks led to it, where it was called through several lines."""
    arguments: str = ""
    """What it was called with, as torch prints it; only in graphs that were read from text."""
    calls: tuple[Call, ...] | None = None
    """The ATen operators behind it; None where nobody looked."""
    no_tensor: bool = False
    """It is known to give no tensor: a number, a graph, nothing."""
    saved: tuple[TensorInfo, ...] = ()
    """What autograd keeps of it for the backward pass."""
    graphs: tuple[Graph, ...] = ()
    """Graphs within it: the branches of a `cond`, the body of a checkpoint."""
    unasked: tuple[int, ...] = ()
    """Which of its outputs nobody reads. Of the node that returns the graph's results: which of
    its inputs go to autograd alone, and not to the caller."""


class Graph(msgspec.Struct, frozen=True, omit_defaults=True):
    """Nodes in order of execution."""

    nodes: tuple[Node, ...]
    stacks: tuple[tuple[Frame, ...], ...] = ()
    """Calls that led to nodes, outermost first: the user's frames and libraries'."""

    @property
    def ops(self) -> int:
        return sum(node.op.startswith("call_") for node in self.nodes)


class Origins(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the nodes of a later stage came from."""

    nodes: dict[str, tuple[str, ...]] = {}
    """Node -> the nodes of Dynamo's graph that it came from."""
    gradients: dict[str, str] = {}
    """Node of a backward graph -> the alias of the node of Dynamo's graph that it is for."""


class KernelCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call of a kernel in Inductor's output code, and what it computes."""

    kernel: str
    nodes: tuple[str, ...]
    """Nodes of the post-grad graph."""


class KernelOrigins(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where Inductor's output code came from."""

    calls: tuple[KernelCall, ...] = ()
    """In the order of the code."""
    graph: Origins = Origins()
    """Of the post-grad graph that was lowered."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Graph)
_origins = msgspec.json.Decoder(Origins)
_kernel_origins = msgspec.json.Decoder(KernelOrigins)


def encode_graph(graph: Graph) -> str:
    return _encoder.encode(graph).decode()


def decode_graph(text: str) -> Graph:
    """As the other two, raises msgspec.DecodeError on whatever it cannot read."""
    return _decoded(_decoder, text)


def encode_origins(origins: Origins | KernelOrigins) -> str:
    return _encoder.encode(origins).decode()


def decode_origins(text: str) -> Origins:
    return _decoded(_origins, text)


def decode_kernel_origins(text: str) -> KernelOrigins:
    return _decoded(_kernel_origins, text)


def _decoded(decoder: msgspec.json.Decoder[T], text: str) -> T:
    try:
        return decoder.decode(text)
    except (RecursionError, UnicodeError) as error:
        raise msgspec.DecodeError(str(error)) from None
