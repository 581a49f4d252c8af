"""A device: what a chip takes, as declared in one TOML file (`model.devicefile` reads it).

Everything has a default that asks for nothing, so that a file says only what the chip refuses.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

import msgspec

Otherwise = Literal["refused", "padded"]
ReorderedRows = Literal["taken", "copied"]
MemoryFormat = Literal["contiguous", "channels_last", "channels_last_3d"]

_COMPARISON = re.compile(
    r"^\s*(?:len\(\s*(\w+)\s*\)|(\w+))\s*(==|!=|<=|>=|<|>)\s*(\"[^\"]*\"|'[^']*'|[\w.+-]+)\s*$"
)
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "none": None}
_DTYPES = """
    float64 float32 float16 bfloat16 complex128 complex64 complex32 bool
    float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2
    int64 int32 int16 int8 uint64 uint32 uint16 uint8 qint8 quint8 qint32 quint4x2 quint2x4
    int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7
    bits16 bits8 bits4x2 bits2x4 bits1x8
"""
DTYPES = frozenset(_DTYPES.split())
"""The number formats that torch has names for."""
DTYPE_ALIASES = {
    "half": "float16", "fp16": "float16", "float": "float32", "fp32": "float32",
    "double": "float64", "fp64": "float64", "bf16": "bfloat16", "long": "int64", "int": "int32",
    "short": "int16", "chalf": "complex32", "cfloat": "complex64", "cdouble": "complex128",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8",
}  # fmt: skip


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Dtypes(_Table, frozen=True):
    """Number formats."""

    supported: tuple[str, ...] = ()
    """Empty: all."""
    per_op: dict[str, tuple[str, ...]] = {}
    """Operator pattern -> the formats of all tensors that it takes and gives, in place of
    `supported`."""
    integer_width: int | None = None
    """Bits of the widest integer."""
    wider_integers: Literal["narrowed", "refused"] = "refused"
    """What becomes of wider ones. `narrowed` is silent, and wrong beyond the width."""


AlignedDims = tuple[int, ...] | Literal["all"]
ALL_DIMS: Literal["all"] = "all"


class Alignment(_Table, frozen=True):
    """Sizes that must be multiples."""

    multiple: int
    dims: AlignedDims = (-1,)
    """Which dimensions; negative ones count from the last. `all`: every one, but a size of 1 needs
    no alignment: it is broadcast, or one of a kind."""
    ops: tuple[str, ...] = ()
    """Operator patterns it holds for: what they take and what they give. Empty: every tensor."""
    otherwise: Otherwise = "refused"
    """`padded`: the device pads by itself, at the cost of memory and time."""


class Shapes(_Table, frozen=True):
    """Sizes of tensors."""

    max_rank: int | None = None
    max_size: int | None = None
    """Of one dimension."""
    dynamic: bool = True
    """Takes sizes that are known only when it runs."""
    alignment: tuple[Alignment, ...] = ()


class Layout(_Table, frozen=True):
    """How tensors lie in memory."""

    formats: tuple[MemoryFormat, ...] = ()
    """Empty: any strides."""
    max_rank: int | None = None
    """The highest rank that may have strides other than contiguous ones."""
    inner_stride_one: bool = False
    """The last dimension must be dense."""
    dense_rows: bool = False
    """Beside `formats`: takes a tensor whose rows are dense, wherever they begin, such as a slice
    or a chunk."""
    reordered_rows: ReorderedRows = "taken"
    """Dense rows that lie in another order than the tensor has them, such as heads that were moved
    before the positions. `copied`: the device copies them first, at the cost of memory and time."""
    overlapping: bool = True
    """Takes tensors of which several elements share memory, as `expand` makes them."""


class Memory(_Table, frozen=True):
    """Bytes. In a file also as "16 GiB"."""

    peak_bytes: int | None = None
    """Of a whole graph: inputs, parameters and what is alive at the worst moment."""
    tensor_bytes: int | None = None


class Condition(_Table, frozen=True):
    """An operator that is refused under some circumstance."""

    op: str
    when: str
    """A comparison of an argument: `groups > 1`, `dilation != 1`, `ceil_mode == true`. Where the
    argument is a list, one of its items is enough."""
    reason: str = ""


class Ops(_Table, frozen=True):
    """Operators, as ATen overloads or patterns: `aten.sort.stable`, `aten.sort`, `aten._fft_*`."""

    denied: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    """Empty: all. Else every other one is refused."""
    conditions: tuple[Condition, ...] = ()


class Device(_Table, frozen=True):
    """What one chip takes."""

    name: str
    title: str = ""
    note: str = ""
    dtypes: Dtypes = Dtypes()
    shapes: Shapes = Shapes()
    layout: Layout = Layout()
    memory: Memory = Memory()
    ops: Ops = Ops()


class Comparison(NamedTuple):
    """What a condition asks of an argument."""

    argument: str
    sign: str
    wanted: Any
    """A number, a word, a truth value or None."""
    counted: bool = False
    """Of a list: it is its length that is compared."""


def parse_comparison(text: str) -> Comparison:
    """`groups > 1`, or `len(stride) > 2`; ValueError for what is none."""
    match = _COMPARISON.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a comparison such as `groups > 1`")
    listed, plain, sign, wanted = match.groups()
    argument = listed or plain
    try:
        return Comparison(argument, sign, float(wanted), counted=bool(listed))
    except ValueError:
        if listed:
            raise ValueError(f"the length of {argument} is no {wanted}: a number") from None
        if sign not in ("==", "!="):
            raise ValueError(f"{wanted} has no order: `{sign}` needs a number") from None
    if wanted.lower() in _WORDS:
        return Comparison(argument, sign, _WORDS[wanted.lower()])
    return Comparison(argument, sign, wanted.strip("\"'"))
