"""Why a step is slow: each piece of its time belongs to one cause, or to none.

The most specific cause takes a piece: an operator of float64 outside of compiled code is a leak of
float64 first. Causes are ranked by the time of a step that they take.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, TypeVar

import msgspec

from compilescope.profiles.calls import CallPlace, Calls, StepCall, StepPlaces, UserLine
from compilescope.profiles.host import is_sync
from compilescope.profiles.kernels import work_of
from compilescope.profiles.step import Wait, waits_of
from compilescope.profiles.trace import Trace, TraceSpan

T = TypeVar("T")
CauseId = Literal[
    "float64", "transfer", "sync", "data", "layout", "copy", "tf32", "optimizer", "uncompiled",
    "fallback", "guards", "launches", "python", "collective",
]  # fmt: skip
LEAST = 0.03
"""A share of the step. Chosen: less is within what steps differ from one another."""
_COPIES = frozenset(
    f"aten::{name}" for name in ("contiguous", "clone", "copy_", "reshape", "_to_copy", "to")
)
_LAYOUTS = re.compile(r"nchwToNhwc|nhwcToNchw|tensorTransformGeneric", re.IGNORECASE)
_ONLY_COPIES = re.compile(r"triton_\w+?_fused(?:_(?:clone|copy|contiguous|view|permute|t))+_\d+$")
_DOUBLE = re.compile(r"\bdouble\b|f64|dgemm", re.IGNORECASE)
_AMPERE = 8
"""The first generation (compute capability) whose tensor cores take TF32."""
_OWN_LINE = 0.5
"""Of the host's time in Python. Chosen: a line that takes less is not where it goes."""
_MOST_LINES = 3


class Cause(msgspec.Struct, frozen=True):
    """What takes some of the step."""

    cause: CauseId
    us: float
    """A step."""
    share: float
    lines: list[UserLine] = []
    """Where it comes from, the most expensive first."""
    names: list[str] = []
    """Operators or functions at these lines."""


class _TimePiece(NamedTuple):
    cause: CauseId | None
    us: float
    at: UserLine | None = None
    name: str = ""


def causes_of(
    trace: Trace, places: StepPlaces, step_us: float | None = None, matmul_precision: str = ""
) -> list[Cause]:
    """Those that take a share worth a word, the most expensive first."""
    if not trace.steps:
        return []
    calls = Calls(trace, places)
    claims = _Claims(trace, calls, matmul_precision)
    waits = waits_of(trace, step_us)
    pieces = [claims.wait(wait) for wait in waits]
    if trace.device:
        pieces += claims.kernels()
    count = len(trace.steps)
    total = step_us or (trace.steps[-1].end - trace.steps[0].start) / count
    pieces = _with_lines(pieces, places)
    found = _grouped(pieces, count, total)
    if trace.device:
        found = [_gained(cause, trace, total, count) for cause in found]
    return sorted((c for c in found if c.share >= LEAST), key=lambda cause: -cause.us)


class _Claims:
    """Which cause takes a piece."""

    def __init__(self, trace: Trace, calls: Calls, matmul_precision: str) -> None:
        self._trace, self._calls = trace, calls
        major = max((int(d.get("computeMajor", 0)) for d in trace.devices), default=0)
        self._misses_tf32 = matmul_precision == "highest" and major >= _AMPERE
        self._launches = trace.launches
        self._to_device = {
            id(call.span)
            for span in trace.device
            if "HtoD" in span.name and (call := self._call_of(span)) is not None
        }

    def kernels(self) -> list[_TimePiece]:
        """What the device does, of all steps together."""
        start, end = self._trace.steps[0].start, self._trace.steps[-1].end
        return [self._kernel(span) for span in self._trace.device if start <= span.start < end]

    def wait(self, wait: Wait) -> _TimePiece:
        begin = wait.start if wait.sync is None else wait.sync
        call = self._calls.at(wait.lane, begin)
        if wait.part == "sync":
            inward = call is not None and id(call.span) in self._to_device
            return self._piece("transfer" if inward else "sync", wait.us, call)
        if wait.part in ("data", "guards", "python", "optimizer", "collective"):
            return _TimePiece(wait.part, wait.us)
        if wait.part in ("generated", "library", "operator"):
            # Of a device: the host, on the way to a launch; on a CPU the work itself.
            return self._on_host(wait, call)
        if wait.part == "backward":
            return self._piece("uncompiled", wait.us, call)
        if call is not None and wait.part in ("launch", "latency"):
            return self._on_host(wait, call)
        return _TimePiece("launches", wait.us)

    def _on_host(self, wait: Wait, call: StepCall | None) -> _TimePiece:
        if call is None:
            launching = bool(self._trace.device)
            return _TimePiece(
                "launches" if launching and wait.part != "operator" else None, wait.us
            )
        place = call.place
        if not self._trace.device:
            if "float64" in place.dtypes:
                return self._piece("float64", wait.us, call)
            if place.name in _COPIES and place.within in ("", "backward", "region"):
                return self._piece("copy", wait.us, call)
        if place.within == "optimizer":
            return self._piece("optimizer", wait.us, call)
        if place.within == "data":
            return self._piece("data", wait.us, call)
        if place.within in ("", "backward") and wait.part not in ("generated", "library"):
            return self._piece("uncompiled", wait.us, call)
        if not self._trace.device:
            return _TimePiece(None, wait.us)
        return _TimePiece("launches", wait.us)

    def _kernel(self, span: TraceSpan) -> _TimePiece:
        call = self._call_of(span)
        place = call.place if call is not None else CallPlace("")
        work = work_of(span)
        cause: CauseId | None = None
        if "float64" in place.dtypes or _DOUBLE.search(span.name):
            cause = "float64"
        elif "HtoD" in span.name or "DtoH" in span.name:
            cause = "transfer" if "HtoD" in span.name else "sync"
        elif work == "collective":
            cause = "collective"
        elif _LAYOUTS.search(span.name) or _ONLY_COPIES.match(span.name):
            cause = "layout"
        elif place.name in _COPIES and place.within in ("", "backward", "region"):
            cause = "copy"
        elif work == "library" and self._is_plain_float32(span, place):
            cause = "tf32"
        elif place.within == "optimizer":
            cause = "optimizer"
        elif work in ("eager", "library") and call is not None:
            outside = place.within in ("", "backward")
            cause = "uncompiled" if outside else "fallback" if work == "eager" else None
        return self._piece(cause, span.duration, call)

    def _is_plain_float32(self, span: TraceSpan, place: CallPlace) -> bool:
        floats = [dtype for dtype in place.dtypes if "float" in dtype]
        known = floats == ["float32"] if floats else "f32f32_f32f32" in span.name
        return self._misses_tf32 and known and "tf32" not in span.name and place.flops > 0

    def _call_of(self, span: TraceSpan) -> StepCall | None:
        launch = self._launches.get(span.correlation)
        return None if launch is None else self._calls.at(launch.lane, launch.start)

    def _piece(self, cause: CauseId | None, us: float, call: StepCall | None) -> _TimePiece:
        if call is None:
            return _TimePiece(cause, us)
        return _TimePiece(cause, us, call.place.at, call.place.name)


def _with_lines(pieces: list[_TimePiece], places: StepPlaces) -> list[_TimePiece]:
    """The host's time in Python has no call of its own: the line that takes most of it."""
    if not places.lines:
        return pieces
    longest = places.lines[0]
    whole = sum(line.us for line in places.lines)
    if longest.us < _OWN_LINE * whole:
        return pieces
    return [
        p._replace(at=longest.at, name=longest.calls) if p.cause == "python" else p for p in pieces
    ]


def _grouped(pieces: Iterable[_TimePiece], count: int, total: float) -> list[Cause]:
    groups: dict[CauseId, list[_TimePiece]] = defaultdict(list)
    for piece in pieces:
        if piece.cause is not None:
            groups[piece.cause].append(piece)
    found = []
    for cause, own in groups.items():
        us = sum(piece.us for piece in own) / count
        lines = _most(own, lambda piece: piece.at)
        names = _most(own, lambda piece: piece.name)
        found.append(Cause(cause, us, us / total, lines, names))
    return found


def _most(pieces: Iterable[_TimePiece], key: Callable[[_TimePiece], T | None]) -> list[T]:
    times: dict[T, float] = defaultdict(float)
    for piece in pieces:
        value = key(piece)
        if value:
            times[value] += piece.us
    return sorted(times, key=lambda value: -times[value])[:_MOST_LINES]


def _gained(cause: Cause, trace: Trace, total: float, count: int) -> Cause:
    """A synchronisation costs no more than the host waits in it: a host that is late anyway has
    lost nothing by it."""
    if cause.cause not in ("sync", "transfer"):
        return cause
    start, end = trace.steps[0].start, trace.steps[-1].end
    waited = sum(s.duration for s in trace.host if is_sync(s) and start <= s.start < end) / count
    copied = sum(s.duration for s in trace.device if s.kind == "gpu_memcpy") / count
    us = min(cause.us, waited + copied)
    return msgspec.structs.replace(cause, us=us, share=us / total)
