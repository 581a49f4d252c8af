"""From printed nodes to the portable graph: dtypes, shapes and sizes as torch abbreviates them."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from compilescope.analysis.stages.printed_graph import PrintedGraph
from compilescope.model.graph import Graph, Node, TensorInfo
from compilescope.patterns import late
from compilescope.texts import whole_number

# torch.utils._dtype_abbrs of torch 2.13: name and bytes of an element.
_DTYPES = {
    "u8": ("uint8", 1), "u16": ("uint16", 2), "u32": ("uint32", 4), "u64": ("uint64", 8),
    "i8": ("int8", 1), "i16": ("int16", 2), "i32": ("int32", 4), "i64": ("int64", 8),
    "f16": ("float16", 2), "f32": ("float32", 4), "f64": ("float64", 8),
    "bf16": ("bfloat16", 2), "c32": ("complex32", 4), "c64": ("complex64", 8),
    "c128": ("complex128", 16), "b8": ("bool", 1), "b1x8": ("bits1x8", 1),
    "b2x4": ("bits2x4", 1), "b4x2": ("bits4x2", 1), "b8x1": ("bits8", 1),
    "b16x1": ("bits16", 2), "f8e5m2": ("float8_e5m2", 1), "f8e4m3fn": ("float8_e4m3fn", 1),
    "f8e5m2fnuz": ("float8_e5m2fnuz", 1), "f8e4m3fnuz": ("float8_e4m3fnuz", 1),
    "f8e8m0fnu": ("float8_e8m0fnu", 1), "f4e2m1fnx2": ("float4_e2m1fn_x2", 1),
}  # fmt: skip
_TENSOR = late(r"(?:\w+\()?(\w+)\[([^\]]*)\](?:\[([^\]]*)\])?([^,)]*)")


@functools.lru_cache(maxsize=8192)
def tensor_of(annotation: str) -> TensorInfo | None:
    """`f32[8, 16][16, 1]cpu`; None for what is no tensor, such as a symbolic number."""
    found = _TENSOR.match(annotation)
    if found is None or annotation.startswith("Sym("):
        return None
    dtype, item_bytes = _DTYPES.get(found[1], (found[1], None))
    shape = tuple(_sizes(found[2]))
    size_bytes = item_bytes
    for size in shape:
        size_bytes = None if size_bytes is None or isinstance(size, str) else size_bytes * size
    return TensorInfo(
        shape=shape,
        dtype=dtype,
        stride=tuple(_sizes(found[3])) if found[3] is not None else None,
        device=found[4],
        size_bytes=size_bytes,
    )


def _sizes(text: str) -> Iterable[int | str]:
    """Sizes may be formulas, with commas of their own: `s0 + ((s0//2)), Max(1, s1)`."""
    depth, start = 0, 0
    for at, sign in enumerate(f"{text},"):
        depth += (sign == "(") - (sign == ")")
        if sign != "," or depth > 0:
            continue
        size, start = text[start:at].strip(), at + 1
        if size:
            number = whole_number(size)
            yield size if number is None else number


def portable_graphs(printed: PrintedGraph) -> list[Graph]:
    """The graph, then the graphs within it."""
    nodes: list[list[Node]] = [[] for _ in printed.scopes]
    for node in printed.nodes:
        if node.op == "bundle":
            continue
        tensor = tensor_of(node.annotation) if node.annotation else None
        nodes[node.scope].append(
            Node(
                name=node.name,
                op=node.op,
                target=node.target,
                outputs=(tensor,) if tensor is not None else (),
                arguments=node.arguments,
                no_tensor=node.annotation.startswith("Sym("),
            )
        )
    return [Graph(tuple(of_scope)) for of_scope in nodes]
