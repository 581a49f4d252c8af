"""A device as blocks: what it takes, under the headings of its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compilescope.model.byte_counts import shown_bytes
from compilescope.model.device import ALL_DIMS, Alignment, Device
from compilescope.report.blocks import Block, Facts, Heading, Paragraph, Span, Words, prose, words

_Row = tuple[str, Words]
_ANY = words(Span("any", "dim"))


def device_blocks(device: Device) -> list[Block]:
    """Everything that it asks for; what it leaves open says so."""
    blocks: list[Block] = [Paragraph(prose(device.note))] if device.note else []
    for title, rows in (
        ("Number formats", _dtypes(device)),
        ("Sizes", _shapes(device)),
        ("Layout", _layout(device)),
        ("Memory", _memory(device)),
        ("Operators", _ops(device)),
    ):
        blocks += [Heading(title), Facts(tuple(rows))]
    return blocks


def _dtypes(device: Device) -> Iterator[_Row]:
    dtypes = device.dtypes
    yield "supported", _names(dtypes.supported)
    for op, names in dtypes.per_op.items():
        yield op, _names(names)
    if dtypes.integer_width is not None:
        fate = {"narrowed": "silently narrowed", "refused": "rejected"}[dtypes.wider_integers]
        yield "integers", words(f"up to {dtypes.integer_width} bits; wider ones are {fate}")


def _shapes(device: Device) -> Iterator[_Row]:
    shapes = device.shapes
    yield "dynamic", words("supported" if shapes.dynamic else "not supported")
    yield "rank", _most(shapes.max_rank)
    yield "size", _most(shapes.max_size)
    for rule in shapes.alignment:
        yield f"multiples of {rule.multiple}", _alignment(rule)


def _alignment(rule: Alignment) -> Words:
    fate = "padded" if rule.otherwise == "padded" else "rejected"
    text = f"{_dims(rule)} of "
    ops = [Span(", ".join(rule.ops), "code")] if rule.ops else ["every tensor"]
    return words(text, *ops, f"; others are {fate}")


def _dims(rule: Alignment) -> str:
    if rule.dims == ALL_DIMS:
        return "all dimensions, except those of size 1,"
    which = "dimension" if len(rule.dims) == 1 else "dimensions"
    return f"{which} {' and '.join(map(str, rule.dims))}"


def _layout(device: Device) -> Iterator[_Row]:
    layout = device.layout
    yield "strides", words(" or ".join(layout.formats)) if layout.formats else _ANY
    if layout.dense_rows:
        yield "rows", words("dense rows may start anywhere, as in a slice")
    if layout.max_rank is not None:
        yield "rank", words(f"contiguous above {layout.max_rank}")
    if layout.inner_stride_one:
        yield "last", words("the last dimension must be dense")
    if not layout.overlapping:
        yield "sharing", words("elements must not share memory")


def _memory(device: Device) -> Iterator[_Row]:
    for label, limit in (
        ("a graph", device.memory.peak_bytes),
        ("a tensor", device.memory.tensor_bytes),
    ):
        yield label, words(f"at most {shown_bytes(limit)}") if limit is not None else _ANY


def _ops(device: Device) -> Iterator[_Row]:
    ops = device.ops
    yield "supported", _names(ops.allowed)
    if ops.denied:
        yield "unsupported", _names(ops.denied)
    for condition in ops.conditions:
        reason = f": {condition.reason}" if condition.reason else ""
        yield "unsupported", words(Span(f"{condition.op} when {condition.when}", "code"), reason)


def _names(names: Sequence[str]) -> Words:
    return words(Span(", ".join(names), "code")) if names else _ANY


def _most(limit: int | None) -> Words:
    return words(f"at most {limit}") if limit is not None else _ANY
