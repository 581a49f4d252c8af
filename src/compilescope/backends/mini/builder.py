"""Writes a graph in the compiler's text format, and knows the shape and dtype of every value: the
compiler's four dtypes, and torch's rules of promotion among them.

Operands of pointwise operators must have one shape and one dtype: `expand` and `cast` are written
out here wherever torch would broadcast or promote by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import torch

Shape = tuple[int, ...]
HEADER = "mini 1"


class Untranslatable(Exception):
    """Something that the small compiler has no words for, in one clause."""


class MiniValue(NamedTuple):
    """The result of one line of the compiler's text."""

    id: int
    dtype: DType
    shape: Shape

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


Operand = MiniValue | bool | int | float


class GraphBuilder:
    """One graph, line by line."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def text(self, outputs: Sequence[MiniValue]) -> str:
        end = " ".join(["return", *(f"%{value.id}" for value in outputs)])
        return "\n".join([HEADER, *self._lines, end, ""])

    def emit(
        self,
        op: str,
        inputs: Sequence[MiniValue],
        dtype: DType,
        shape: Sequence[int],
        **attributes: Any,
    ) -> MiniValue:
        value = MiniValue(len(self._lines), dtype, tuple(shape))
        words = [f"%{value.id} = {op}", *(f"%{given.id}" for given in inputs)]
        words += [f"{name}={_written(given)}" for name, given in attributes.items()]
        self._lines.append(f"{' '.join(words)} : {dtype}[{', '.join(map(str, value.shape))}]")
        return value

    # Leaves.

    def input(self, dtype: DType, shape: Sequence[int], strides: Sequence[int]) -> MiniValue:
        return self.emit("input", (), dtype, shape, strides=list(strides))

    def constant(
        self, number: bool | int | float, dtype: DType, shape: Sequence[int] = ()
    ) -> MiniValue:
        return self.emit("constant", (), dtype, shape, value=_number(number, dtype))

    def iota(self, length: int, start: int = 0, step: int = 1) -> MiniValue:
        return self.emit("iota", (), "i64", (length,), start=start, step=step)

    # Shapes and dtypes.

    def cast(self, value: MiniValue, dtype: DType) -> MiniValue:
        return value if value.dtype == dtype else self.emit("cast", [value], dtype, value.shape)

    def reshape(self, value: MiniValue, shape: Sequence[int]) -> MiniValue:
        if value.shape == tuple(shape):
            return value
        return self.emit("reshape", [value], value.dtype, shape)

    def permute(self, value: MiniValue, dims: Sequence[int]) -> MiniValue:
        if list(dims) == list(range(value.rank)):
            return value
        shape = [value.shape[dim] for dim in dims]
        return self.emit("permute", [value], value.dtype, shape, dims=list(dims))

    def expand(self, value: MiniValue, shape: Sequence[int]) -> MiniValue:
        """Broadcast; dimensions are added in front."""
        wanted = tuple(shape)
        if value.shape == wanted:
            return value
        value = self.reshape(value, (1,) * (len(wanted) - value.rank) + value.shape)
        if value.shape == wanted:
            return value
        return self.emit("expand", [value], value.dtype, wanted)

    def slice(self, value: MiniValue, dim: int, start: int, end: int, step: int = 1) -> MiniValue:
        size = value.shape[dim]
        if (start, end, step) == (0, size, 1):
            return value
        shape = list(value.shape)
        shape[dim] = max(0, -(-(end - start) // step))
        return self.emit(
            "slice", [value], value.dtype, shape, dim=dim, start=start, end=end, step=step
        )

    def cat(self, values: Sequence[MiniValue], dim: int) -> MiniValue:
        if len(values) == 1:
            return values[0]
        shape = list(values[0].shape)
        shape[dim] = sum(value.shape[dim] for value in values)
        return self.emit("cat", values, values[0].dtype, shape, dim=dim)

    # Work.

    def unary(self, op: str, value: MiniValue, *, truth: bool = False) -> MiniValue:
        return self.emit(op, [value], "bool" if truth else value.dtype, value.shape)

    def binary(
        self, op: str, one: MiniValue, other: MiniValue, *, truth: bool = False
    ) -> MiniValue:
        """Of one dtype; broadcast."""
        one, other = self.broadcast([one, other])
        return self.emit(op, [one, other], "bool" if truth else one.dtype, one.shape)

    def where(self, condition: MiniValue, then: MiniValue, other: MiniValue) -> MiniValue:
        condition, then, other = self.broadcast([condition, then, other])
        return self.emit("where", [condition, then, other], then.dtype, then.shape)

    def reduce(
        self,
        op: str,
        value: MiniValue,
        dims: Sequence[int],
        keepdim: bool,
        dtype: DType | None = None,
    ) -> MiniValue:
        """Over these dimensions, all distinct and not negative; none of them: nothing to do but
        for what a reduction makes of a single number."""
        if not dims:
            flat = self.reshape(value, (*value.shape, 1))
            return self.reduce(op, flat, [value.rank], False, dtype)
        shape = [
            1 if dim in dims else size
            for dim, size in enumerate(value.shape)
            if keepdim or dim not in dims
        ]
        ordered = sorted(dims)
        if op in ("argmax", "argmin"):
            return self.emit(op, [value], "i64", shape, dims=ordered, keepdim=int(keepdim))
        return self.emit(
            op, [value], dtype or value.dtype, shape, dims=ordered, keepdim=int(keepdim)
        )

    def matmul(self, one: MiniValue, other: MiniValue) -> MiniValue:
        shape = (*one.shape[:-1], other.shape[-1])
        return self.emit("matmul", [one, other], one.dtype, shape)

    # What torch does by itself.

    def broadcast(self, values: Sequence[MiniValue]) -> list[MiniValue]:
        shape = broadcast_shape([value.shape for value in values])
        return [self.expand(value, shape) for value in values]

    def promote(self, *operands: Operand, floating: bool = False) -> list[MiniValue]:
        """All operands as values of the one dtype that torch would compute in. `floating`: integers
        become floats."""
        dtype = operand_type(operands)
        if floating and not is_float(dtype):
            dtype = default_float()
        return [self.as_value(operand, dtype) for operand in operands]

    def as_value(self, operand: Operand, dtype: DType) -> MiniValue:
        if isinstance(operand, MiniValue):
            return self.cast(operand, dtype)
        return self.constant(operand, dtype)


def operand_type(operands: Iterable[Operand]) -> DType:
    operands = list(operands)
    values = [operand for operand in operands if isinstance(operand, MiniValue)]
    return _result_type(
        [value.dtype for value in values if value.rank],
        [value.dtype for value in values if not value.rank],
        [scalar_dtype(operand) for operand in operands if not isinstance(operand, MiniValue)],
    )


def broadcast_shape(shapes: Sequence[Shape]) -> Shape:
    rank = max(map(len, shapes))
    result = [1] * rank
    for shape in shapes:
        for dim, size in enumerate(shape, start=rank - len(shape)):
            if size != 1:
                if result[dim] not in (1, size):
                    raise Untranslatable(f"shapes {list(shapes)} can't be broadcast")
                result[dim] = size
    return tuple(result)


def _number(number: bool | int | float, dtype: DType) -> str:
    if dtype == "bool":
        return str(int(bool(number)))
    if dtype == "i64":
        return str(int(number))
    number = float(number)
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return repr(number)


def _written(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return str(value)


DType = Literal["f32", "f64", "i64", "bool"]
BY_TORCH: dict[torch.dtype, DType] = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int64: "i64",
    torch.bool: "bool",
}
TO_TORCH: dict[DType, torch.dtype] = {name: dtype for dtype, name in BY_TORCH.items()}
_ORDER: tuple[DType, ...] = ("bool", "i64", "f32", "f64")


def is_float(dtype: DType) -> bool:
    return dtype in ("f32", "f64")


def default_float() -> DType:
    """What an integer becomes where a float is needed."""
    return BY_TORCH.get(torch.get_default_dtype(), "f32")


def _promoted(one: DType, other: DType) -> DType:
    return max(one, other, key=_ORDER.index)


def scalar_dtype(value: Any) -> DType:
    if isinstance(value, bool):
        return "bool"
    return "i64" if isinstance(value, int) else default_float()


def _result_type(
    tensors: Iterable[DType], zero_dim: Iterable[DType], scalars: Iterable[DType]
) -> DType:
    """As torch.result_type: tensors without dimensions, and numbers, count only where their kind
    (bool, integer, float) is a higher one than that of what comes before them."""
    result: DType | None = None
    for dtypes in (tensors, zero_dim, scalars):
        lower: DType | None = None
        for dtype in dtypes:
            lower = dtype if lower is None else _promoted(lower, dtype)
        if lower is None:
            continue
        if result is None:
            result = lower
        elif not is_float(result) and (result == "bool" or is_float(lower)):
            result = _promoted(result, lower)
    if result is None:
        raise ValueError("no operands")
    return result
