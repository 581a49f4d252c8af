"""Number formats, for all operators or for some, and integers wider than the device's."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from compilescope.knowledge.rules.constraints._samples import graph, node, tensor
from compilescope.knowledge.rules.hardware.constraint import (
    Breach,
    Constraint,
    ConstraintRule,
    Sample,
    default_device,
    is_input,
    is_op,
    is_parameter,
    lacks_value,
)
from compilescope.knowledge.rules.hardware.op_names import OpPatterns
from compilescope.knowledge.rules.hardware.operands import made
from compilescope.record.device import DTYPE_ALIASES, DTYPES, Device
from compilescope.record.graph import Graph, Node, TensorInfo

_INTEGER = re.compile(r"^u?int(\d{1,9})$")
_BITS = re.compile(r"\d{1,9}")
_KINDS = (("float", "bfloat"), ("int", "uint", "bool"), ("complex",))


class DtypeConstraint(Constraint):
    """Tensors must be of these number formats. They may be given as strings or as torch's own.

    Without any argument: those of the generic device.
    """

    id = "dtype"

    def __init__(
        self,
        allowed_dtypes: Sequence[object] | None = None,
        *,
        per_op: Mapping[str, Sequence[object]] | None = None,
        integer_width: int | None = None,
        wider_integers: Literal["narrowed", "refused"] = "refused",
    ) -> None:
        if allowed_dtypes is None and not per_op and integer_width is None:
            allowed_dtypes = default_device().dtypes.supported
        self.allowed = _formats(allowed_dtypes or ())
        self.per_op = {op: _formats(names) for op, names in (per_op or {}).items()}
        self.integer_width = integer_width
        self.wider_integers = wider_integers
        self._named = OpPatterns(self.per_op)
        self._taken = self._words()
        self._wide_ones = frozenset(filter(self._too_wide, DTYPES))

    def check_node(self, node: Node) -> Iterable[Breach]:
        settled: set[str] = set()
        if self._named and is_op(node) and not node.no_tensor and node.calls is None:
            allowed = f"specific formats for {', '.join(self.per_op)}"
            yield self.cannot_tell(node, "its ATen operators are unknown", allowed)
        elif self._named and is_op(node):
            yield from self._check_named(node, settled)
        if lacks_value(node) and (self.allowed or self.integer_width):
            yield self.cannot_tell(node, "its output is unknown", self._taken)
        for dtype in dict.fromkeys(result.dtype for result in made(node)):
            if dtype in self._wide_ones:
                yield self._wide(node, dtype)
            elif self.allowed and dtype not in self.allowed and dtype not in settled:
                remedy = _cast(node, dtype, self.allowed)
                yield self.breach(node, found=dtype, allowed=self._taken, remedy=remedy)

    def _check_named(self, node: Node, settled: set[str]) -> Iterator[Breach]:
        """Operators that have formats of their own. What they were seen with is settled."""
        own = self._named.match(node.target)
        for call in node.calls or ():
            pattern = self._named.match(call.op) or own
            if pattern is None:
                continue
            formats = self.per_op[pattern]
            for dtype in _dtypes(call.inputs, call.outputs):
                if dtype in settled or dtype in self._wide_ones:
                    continue
                settled.add(dtype)
                if dtype not in formats:
                    yield self.breach(
                        node,
                        found=dtype,
                        allowed=f"{', '.join(sorted(formats))} for {pattern}",
                        remedy=_cast(node, dtype, formats),
                        op=call.op,
                    )

    def _words(self) -> str:
        if not self.allowed:
            return f"integers up to {self.integer_width} bits"
        return ", ".join(sorted(self.allowed))

    def _too_wide(self, dtype: str) -> bool:
        match = _INTEGER.match(dtype) if self.integer_width else None
        return bool(match and self.integer_width and int(match[1]) > self.integer_width)

    def _wide(self, node: Node, dtype: str) -> Breach:
        width = self.integer_width or 0
        fitting = [f for f in self.allowed if _INTEGER.match(f) and _bits(f) <= width]
        remedy = _cast(node, dtype, fitting or (f"int{width}",))
        allowed = f"integers up to {width} bits"
        if self.wider_integers == "narrowed":
            return self.warning(
                node,
                found=f"{dtype}, silently narrowed to {width} bits",
                allowed=allowed,
                remedy=(
                    f"Values that need more than {width} bits come out wrong. If all of them fit: "
                    f"{remedy}"
                ),
            )
        return self.breach(node, found=dtype, allowed=allowed, remedy=remedy)


def _formats(dtypes: Iterable[object]) -> frozenset[str]:
    """As torch calls them. A name that nobody knows would refuse everything in silence."""
    names = [str(dtype).removeprefix("torch.") for dtype in dtypes]
    names = [DTYPE_ALIASES.get(name, name) for name in names]
    for name in names:
        if name not in DTYPES:
            near = difflib.get_close_matches(name, DTYPES, 1)
            guess = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"{name!r} is not a dtype{guess}")
    return frozenset(names)


def _dtypes(*groups: tuple[TensorInfo, ...]) -> Iterable[str]:
    return dict.fromkeys(tensor.dtype for group in groups for tensor in group)


def _cast(node: Node, dtype: str, formats: Collection[str]) -> str:
    """How to get the nearest format of the same kind that is allowed."""
    near = _nearest(dtype, frozenset(formats))
    if near is None:
        return f"The device supports no format like {dtype}: run this part on the host."
    wanted = f"torch.{near}"
    if is_parameter(node):
        return f"Convert the model: `model.to({wanted})`."
    if is_input(node):
        return f"Cast it before the call: `.to({wanted})`."
    calls = node.calls or ()
    if calls and not any(call.inputs for call in calls):
        return f"Create it as {near}: `dtype={wanted}`."
    if any(given.dtype == dtype for call in calls for given in call.inputs):
        return f"Its input is {dtype}: cast that to {near} (`.to({wanted})`), and this follows."
    return f"Cast to {near}: `.to({wanted})`."


@lru_cache(maxsize=1024)
def _nearest(dtype: str, formats: frozenset[str]) -> str | None:
    own = next((kind for kind in _KINDS if dtype.startswith(kind)), ())
    near = sorted(
        (name for name in formats if own and name.startswith(own) and name != "bool"),
        key=lambda name: (*_distance(_bits(name), _bits(dtype)), name),
    )
    return near[0] if near else None


def _distance(bits: int, own: int) -> tuple[int, int]:
    """The widest that is no wider; else the narrowest."""
    return (0, own - bits) if bits <= own else (1, bits - own)


def _bits(dtype: str) -> int:
    match = _BITS.search(dtype)
    return int(match[0]) if match else 1


def _make(device: Device) -> list[Constraint]:
    dtypes = device.dtypes
    if not (dtypes.supported or dtypes.per_op or dtypes.integer_width):
        return []
    return [
        DtypeConstraint(
            dtypes.supported,
            per_op=dtypes.per_op,
            integer_width=dtypes.integer_width,
            wider_integers=dtypes.wider_integers,
        )
    ]


def _graph(dtype: str) -> Graph:
    return graph(node("mul", "aten.mul.Tensor", tensor((8, 8), dtype)))


RULE = ConstraintRule(
    id="dtype",
    title="Number formats the device supports",
    reads=(
        "dtypes.supported",
        "dtypes.per_op",
        "dtypes.integer_width",
        "dtypes.wider_integers",
    ),
    make=_make,
    device='name = "x"\n[dtypes]\nsupported = ["float16", "float32"]\n',
    sample=Sample(
        bad=_graph("float64"), good=_graph("float32"), unclear=graph(node("m", "aten.mul.Tensor"))
    ),
)
