"""Each kernel of a step: how often it runs, how long, what it moves and computes, how near to the
roof of the machine that is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

import msgspec

from compilescope.knowledge.profiles.calls import (
    CallPlace,
    Calls,
    StepPlaces,
    UserLine,
    device_work,
)
from compilescope.knowledge.profiles.trace import Trace

_Size = Sequence[int]
_GRAPH = re.compile(r"^graph_\d+_(?=cpp_)")
SHORT_US = 5.0
"""A kernel of a GPU that takes less waits for its launch: a launch takes the host about as long
(H200, torch 2.11: 4 to 8 µs from one kernel of compiled code to the next)."""
_STEADY = 0.25
"""Chosen. Beside other work on both of two cores the middle one of five repeats took 1.3
times longer than the best."""
_MOST_TRIES = 3
"""Chosen: a machine that is always busy shall not be measured before every program."""
_BEATEN = 1.2
"""Chosen: a product of other sizes may be somewhat faster than those that were measured."""
_LEAST_RATE = 1e-60
"""Chosen: far below any device, its inverse far above; products of two such are still floats."""
_EXACT_FLOAT32 = ("", "highest")
"""Torch's words for products of float32 that are computed in float32."""


class Roof(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a device can do at most, as measured by large copies and products of matrices."""

    bytes_per_second: float
    flops_per_second: dict[str, float] = {}
    """By dtype; `tf32` for float32 where that is allowed."""
    spread: float = 0.0
    """How much longer the middle one of the repeats took than the best, as a share of it; of copies
    and products the largest. A machine with other work to do has a large one."""
    beaten: bool = False
    """A kernel was faster than this."""
    tries: int = 1
    """How often it was measured; the best counts."""

    @property
    def is_certain(self) -> bool:
        return self.spread <= _STEADY and not self.beaten

    @property
    def has_tries_left(self) -> bool:
        return self.tries < _MOST_TRIES

    def ceiling(self, dtypes: tuple[str, ...], matmul_precision: str) -> str:
        """The name of what limits products of such matrices; empty where it was not measured."""
        for dtype in ("float64", "float32", "bfloat16", "float16"):
            if dtype in dtypes:
                allowed = dtype == "float32" and matmul_precision not in _EXACT_FLOAT32
                named = "tf32" if allowed and "tf32" in self.flops_per_second else dtype
                return named if named in self.flops_per_second else ""
        return ""

    def best(self, dtypes: tuple[str, ...], matmul_precision: str) -> float | None:
        """Operations a second of such products."""
        return self.flops_per_second.get(self.ceiling(dtypes, matmul_precision))


def read_roof(text: str) -> Roof | None:
    """None where it was not measured, or is not what was stored."""
    try:
        roof = msgspec.json.decode(text, type=Roof) if text else None
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    rates = (roof.bytes_per_second, *roof.flops_per_second.values()) if roof is not None else ()
    return roof if all(map(is_rate, rates)) else None


def is_rate(number: float) -> bool:
    """A record may come from anywhere: what is divided and drawn is far from the ends of floats."""
    return _LEAST_RATE < number < 1 / _LEAST_RATE


class KernelRow(msgspec.Struct, frozen=True):
    """All calls of one kernel from the same lines, a step."""

    name: str
    work: str
    calls: float
    us: float
    share: float
    """Of the step."""
    at: UserLine | None = None
    """The line that calls it, outside of compiled code."""
    code: UserLine | None = None
    """The line of Inductor's code that calls it, in compiled code."""
    dtypes: tuple[str, ...] = ()
    bytes: float = 0.0
    flops: float = 0.0
    operator: str = ""
    """That calls it; empty where that is not known, or where several do."""


class Bound(msgspec.Struct, frozen=True):
    """What a kernel is limited by."""

    by: str
    """`memory`, `compute` or `launch`; empty: not known."""
    share: float | None = None
    """Of the roof."""


def kernel_rows(trace: Trace, places: StepPlaces, step_us: float | None = None) -> list[KernelRow]:
    """The most expensive first. Without a device: operators, and kernels of generated C++."""
    if not trace.steps:
        return []
    calls = Calls(trace, places)
    found = _of_device(trace, calls) if trace.device else _of_host(trace, calls)
    count = len(trace.steps)
    total = step_us or (trace.window[1] - trace.window[0]) / count
    rows = [
        KernelRow(
            name=name,
            work=work,
            calls=len(spans) / count,
            us=sum(us for us, _ in spans) / count,
            share=sum(us for us, _ in spans) / count / total,
            at=at,
            code=code,
            dtypes=spans[0][1].dtypes,
            bytes=sum(place.bytes for _, place in spans) / count,
            flops=sum(place.flops for _, place in spans) / count,
            operator=_same(place.name for _, place in spans),
        )
        for (name, work, at, code), spans in found.items()
    ]
    return sorted(rows, key=lambda row: -row.us)


def _same(names: Iterable[str]) -> str:
    """The name that all have; empty where they differ."""
    found = set(names)
    return found.pop() if len(found) == 1 else ""


_Key = tuple[str, str, UserLine | None, UserLine | None]
_Found = dict[_Key, list[tuple[float, CallPlace]]]


def _of_device(trace: Trace, calls: Calls) -> _Found:
    found: _Found = defaultdict(list)
    launches = trace.launches
    counted: set[int] = set()
    for span in trace.asked:
        launch = launches.get(span.correlation, span)
        call = calls.at(launch.lane, launch.start) if launch is not span else None
        work = device_work(span)
        place = call.place if call is not None and work != "generated" else CallPlace("")
        if call is not None and id(call.span) in counted:
            place = msgspec.structs.replace(place, flops=0.0, bytes=0.0)
        elif call is not None and work == "library":
            counted.add(id(call.span))  # An operator may launch several kernels.
        found[span.name, work, place.at, place.code].append((span.duration, place))
    return found


def _of_host(trace: Trace, calls: Calls) -> _Found:
    found: _Found = defaultdict(list)
    start, end = trace.steps[0].start, trace.steps[-1].end
    for call in calls.of(trace.steps[0].lane):
        if start <= call.span.start < end:
            place = call.place
            work = "library" if place.within == "graph" else "eager"
            key = (call.span.name, work, place.at, place.code)
            found[key].append((call.span.duration, place))
    for span in trace.host:
        if _GRAPH.match(span.name) and start <= span.start < end:
            name = _GRAPH.sub("", span.name)
            found[name, "generated", None, None].append((span.duration, CallPlace("")))
    return found


def bound_of(row: KernelRow, roof: Roof | None, matmul_precision: str, on_gpu: bool) -> Bound:
    """What limits it, and how near it is to that."""
    if on_gpu and row.us / max(row.calls, 1e-9) < SHORT_US:
        return Bound("launch")
    if roof is None or not row.us:
        return Bound("")
    moving = row.bytes / roof.bytes_per_second * 1e6
    best = roof.best(row.dtypes, matmul_precision)
    computing = row.flops / best * 1e6 if best else 0.0
    if not moving and not computing:
        return Bound("")
    by, least = ("memory", moving) if moving >= computing else ("compute", computing)
    # More than the roof: it was in a cache, or only a part of a tensor was read.
    return Bound(by, min(least / row.us, 1.0))


def beats(row: KernelRow, roof: Roof, matmul_precision: str) -> bool:
    """Faster than the machine was found to be: then that was measured too low.

    Only of products of matrices, whose operations are counted exactly; what moves bytes may find
    them in a cache.
    """
    if not _is_product(row.operator) or len(row.dtypes) != 1 or not row.us:
        return False
    ceiling = roof.ceiling(row.dtypes, matmul_precision)
    if not ceiling or (ceiling == "float32" and matmul_precision not in _EXACT_FLOAT32):
        return False  # It may have been computed in another precision.
    return row.flops / row.us * 1e6 > _BEATEN * roof.flops_per_second[ceiling]


# What products of matrices and convolutions compute and move, from the sizes of their operands.


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


def _is_product(name: str) -> bool:
    """Of matrices: its operations are known exactly."""
    return name in _FIRST


def work_of_operator(name: str, sizes: Sequence[_Size]) -> Work | None:
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
