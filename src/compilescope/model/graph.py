"""The portable graph: what constraints and views read, never a live GraphModule."""

from __future__ import annotations

import msgspec

from compilescope.model.stack import Frame


class TensorInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a tensor without its numbers."""

    shape: tuple[int | str, ...]
    """A string is a symbolic size."""
    dtype: str
    stride: tuple[int | str, ...] | None = None
    device: str = ""
    size_bytes: int | None = None
    """None where a size is symbolic."""


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


class Graph(msgspec.Struct, frozen=True, omit_defaults=True):
    """Nodes in order of execution."""

    nodes: tuple[Node, ...]

    @property
    def ops(self) -> int:
        return sum(node.op.startswith("call_") for node in self.nodes)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Graph)


def encode_graph(graph: Graph) -> str:
    return _encoder.encode(graph).decode()


def decode_graph(text: str) -> Graph:
    return _decoder.decode(text)
