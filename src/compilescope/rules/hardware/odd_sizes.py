"""Sizes that break an alignment rule: where each was met first, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from compilescope.model.device import ALL_DIMS, AlignedDims, Alignment
from compilescope.model.graph import Node, TensorInfo
from compilescope.rules.hardware.constraint import is_input, is_parameter, shown_shape
from compilescope.rules.hardware.op_names import OpPatterns
from compilescope.rules.hardware.sizes import Size, is_multiple


class SizePlace(NamedTuple):
    """Where a size was met."""

    dims: tuple[int, ...]
    shaped: TensorInfo

    @property
    def words(self) -> str:
        name = "dimension" if len(self.dims) == 1 else "dimensions"
        return f"{name} {', '.join(map(str, self.dims))} of {shown_shape(self.shaped)}"


Broken = dict[Size, list[tuple[Alignment, SizePlace, str]]]


def note_odd(broken: Broken, rule: Alignment, shaped: TensorInfo, op: str) -> None:
    for size, dims in sizes_in(shaped.shape, rule.dims):
        if not is_multiple(size, rule.multiple):
            broken.setdefault(size, []).append((rule, SizePlace(dims, shaped), op))


def all_sizes(shapes: Iterable[TensorInfo]) -> dict[Size, SizePlace]:
    """All sizes, and where each was met first."""
    found: dict[Size, SizePlace] = {}
    for shaped in shapes:
        for size, dims in sizes_in(shaped.shape, tuple(range(len(shaped.shape)))):
            found.setdefault(size, SizePlace(dims, shaped))
    return found


@lru_cache(maxsize=16384)
def sizes_in(
    shape: tuple[Size, ...], dims: AlignedDims
) -> tuple[tuple[Size, tuple[int, ...]], ...]:
    """The sizes of these dimensions, and which of the dimensions have it."""
    rank = len(shape)
    if dims == ALL_DIMS:
        dims = tuple(dim for dim in range(rank) if shape[dim] != 1)
    at: dict[Size, list[int]] = {}
    for dim in sorted({dim % rank for dim in dims if -rank <= dim < rank}):
        at.setdefault(shape[dim], []).append(dim)
    return tuple((size, tuple(where)) for size, where in at.items())


def concerned(node: Node, patterns: OpPatterns) -> list[tuple[TensorInfo, str]]:
    """What the operators in question give and take."""
    if not node.calls:
        return []
    own = patterns.match(node.target)
    found: dict[tuple[TensorInfo, str], None] = {}
    for call in node.calls:
        if own or patterns.match(call.op):
            for shaped in (*call.outputs, *call.inputs):
                found[shaped, call.op] = None
    return list(found)


def rule_words(rule: Alignment) -> str:
    words = f"multiples of {rule.multiple}"
    return f"{words} for {', '.join(rule.ops)}" if rule.ops else words


def split_words(node: Node, place: SizePlace, size: int, most: int) -> str:
    if is_parameter(node):
        return f"Split the layer into {-(-size // most)} parts."
    return f"Process it in pieces: `.split({most}, dim={place.dims[0]})`."


def pad_words(node: Node, place: SizePlace, size: int, padded: int) -> str:
    if is_parameter(node):
        return f"Create the layer with {padded} instead of {size}, or pad its weights with zeros."
    rank = len(place.shaped.shape)
    widths = [0] * rank
    for dim in place.dims:
        widths[dim] = padded - size
    while widths and widths[0] == 0:
        del widths[0]
    zeros = ", ".join(f"0, {width}" for width in reversed(widths))
    when = " before the call" if is_input(node) else ""
    return f"Pad {size} to {padded}{when}: `torch.nn.functional.pad(x, ({zeros}))`."
