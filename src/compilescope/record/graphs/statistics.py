"""What a graph holds, in numbers: ops, dtypes, bytes and floating point operations.

Made from portable graphs. A size that is symbolic is unknown: sums then say "at least".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from compilescope.record.graph import Graph, Node, TensorInfo
from compilescope.record.graphs.flops import count_flops, is_counted, op_name

# They give another look at memory that is there already; a reshape nearly always does.
_VIEWS = frozenset(
    {
        "alias", "as_strided", "chunk", "detach", "diagonal", "expand", "expand_as", "flatten",
        "getattr", "movedim", "narrow", "permute", "real", "reshape", "select", "slice", "split",
        "split_with_sizes", "squeeze", "swapaxes", "t", "transpose", "unbind", "unflatten",
        "unfold", "unsqueeze", "view", "view_as", "view_as_real",
    }
)  # fmt: skip
_PARAMETER = ("_parameters[", "_buffers[")


class Amount(msgspec.Struct, frozen=True):
    """A sum of which some parts may not be known."""

    known: int = 0
    unknown: int = 0
    """Parts of symbolic or unprinted size."""

    @property
    def at_least(self) -> bool:
        return self.unknown > 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.known + other.known, self.unknown + other.unknown)


class GraphStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """One graph, with the graphs within it."""

    ops: int
    by_op: dict[str, int]
    """Most frequent first."""
    dtypes: dict[str, int]
    """Of what its ops give, most frequent first."""
    devices: tuple[str, ...]
    inputs: Amount
    """Bytes."""
    parameters: Amount | None
    """Bytes of inputs that are parameters or buffers; None where that cannot be told."""
    intermediates: Amount
    """Bytes of what ops make and the graph does not return, as if each were stored."""
    outputs: Amount
    """Bytes."""
    flops: Amount
    counted_ops: int
    """Of kinds whose operations are counted."""
    subgraphs: int = 0
    """Graphs within it (branches, checkpointed parts), each counted once."""


def graph_statistics(graphs: Sequence[Graph], returned: Iterable[str] = ()) -> GraphStatistics:
    """Of a graph and those within it. `returned` names what it gives back."""
    operations = [(graph, node) for graph in graphs for node in graph.nodes if _is_op(node)]
    by_op = Counter(op_name(node) for _, node in operations)
    made = [tensor for _, node in operations for tensor in node.outputs]
    main = graphs[0] if graphs else Graph(())
    tensors = [_tensors(graph) for graph in graphs]
    at = {id(graph): known for graph, known in zip(graphs, tensors, strict=True)}
    sources = {id(graph): {node.name: node for node in graph.nodes} for graph in graphs}
    counted = [(graph, node) for graph, node in operations if is_counted(node)]
    given = set(returned)
    inputs, parameters = _inputs(main)
    return GraphStatistics(
        ops=len(operations),
        by_op=dict(by_op.most_common()),
        dtypes=dict(Counter(tensor.dtype for tensor in made).most_common()),
        devices=tuple(dict.fromkeys(tensor.device for tensor in made if tensor.device)),
        inputs=inputs,
        parameters=parameters,
        intermediates=tensor_bytes(
            tensor
            for graph, node in operations
            if node.outputs and not (graph is main and node.name in given)
            if _makes(node, at[id(graph)], sources[id(graph)])
            for tensor in node.outputs
        ),
        outputs=tensor_bytes(tensors[0][name] for name in given if tensors and name in tensors[0]),
        flops=amount_of(count_flops(node, at[id(graph)]) for graph, node in counted),
        counted_ops=len(counted),
        subgraphs=max(len(graphs) - 1, 0),
    )


def _is_op(node: Node) -> bool:
    return node.op.startswith("call_")


def _makes(node: Node, tensors: dict[str, TensorInfo], nodes: dict[str, Node]) -> bool:
    """Does it need memory of its own? Views, parts of them, and what works in place do not."""
    name = op_name(node)
    if name != "getitem":
        return name not in _VIEWS and not (name.endswith("_") and not name.endswith("__"))
    whole = node.arguments.partition(",")[0].strip()
    # A part of a tensor is a view of it; a part of a tuple is what the op before it made.
    return whole not in tensors and not (whole in nodes and op_name(nodes[whole]) in _VIEWS)


def _tensors(graph: Graph) -> dict[str, TensorInfo]:
    return {node.name: node.outputs[0] for node in graph.nodes if node.outputs}


def _inputs(graph: Graph) -> tuple[Amount, Amount | None]:
    """Inputs without parameters, and parameters. Only Dynamo knows which input is which."""
    given = [node for node in graph.nodes if node.op in ("placeholder", "get_attr")]
    if not any(node.source for node in given):
        plain = [node for node in given if node.op == "placeholder"]
        return tensor_bytes(tensor for node in plain for tensor in node.outputs), None
    held = [node for node in given if node.op == "get_attr" or _is_parameter(node)]
    plain = [node for node in given if node not in held]
    return (
        tensor_bytes(tensor for node in plain for tensor in node.outputs),
        tensor_bytes(tensor for node in held for tensor in node.outputs),
    )


def _is_parameter(node: Node) -> bool:
    return any(mark in node.source for mark in _PARAMETER)


def tensor_bytes(tensors: Iterable[TensorInfo]) -> Amount:
    """Of all of them; those of unknown size are counted apart."""
    return amount_of(tensor.size_bytes for tensor in tensors)


def amount_of(parts: Iterable[int | None]) -> Amount:
    """What is known, and how many parts are not."""
    known = unknown = 0
    for part in parts:
        if part is None:
            unknown += 1
        else:
            known += part
    return Amount(known, unknown)
