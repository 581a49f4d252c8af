"""What products of matrices and convolutions compute and move, from the sizes of their operands."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

Size = Sequence[int]


class Work(NamedTuple):
    flops: float
    elements: float
    """Read and written once each."""


_FIRST = {
    "aten::mm": 0,
    "aten::bmm": 0,
    "aten::addmm": 1,
    "aten::baddbmm": 1,
    "aten::_addmm_activation": 1,
}
"""The place of the first factor among the operands."""
_CONVOLUTIONS = ("aten::convolution", "aten::cudnn_convolution", "aten::mkldnn_convolution")
_ATTENTION = "aten::_scaled_dot_product"


def is_product(name: str) -> bool:
    """Of matrices: its operations are known exactly."""
    return name in _FIRST


def work_of_operator(name: str, sizes: Sequence[Size]) -> Work | None:
    """None: not one of these, or its operands are not known."""
    if name in _FIRST and len(sizes) >= _FIRST[name] + 2:
        one, other = sizes[_FIRST[name]], sizes[_FIRST[name] + 1]
        if len(one) != len(other) or len(one) < 2 or one[-1] != other[-2]:
            return None
        batch = prod(one[:-2])
        m, k, n = one[-2], one[-1], other[-1]
        return Work(2.0 * batch * m * k * n, batch * (m * k + k * n + m * n))
    if name.startswith(_ATTENTION) and "backward" not in name and len(sizes) >= 3:
        query, key, value = sizes[:3]
        if len(query) == len(key) == len(value) == 4:
            batch, heads, rows, width = query
            pairs = batch * heads * rows * key[2]
            return Work(2.0 * pairs * (width + value[3]), 2 * prod(query) + prod(key) + prod(value))
    if name in _CONVOLUTIONS and len(sizes) >= 2 and len(sizes[0]) == len(sizes[1]) > 2:
        # With a stride the output is smaller; of that the operands' sizes say nothing.
        image, weight = sizes[0], sizes[1]
        points = image[0] * prod(image[2:])
        return Work(2.0 * points * prod(weight), prod(image) + prod(weight) + points * weight[0])
    return None
