"""Why a step is slow: each piece of its time belongs to one cause, or to none.

The most specific cause takes a piece: an operator of float64 outside of compiled code is a leak of
float64 first. Causes are ranked by what a step would be shorter by without them.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

import msgspec

from compilescope.knowledge.profiles.calls import (
    CallPlace,
    Calls,
    StepCall,
    StepPlaces,
    UserLine,
    device_work,
    is_sync,
)
from compilescope.knowledge.profiles.kernel_rows import Roof
from compilescope.knowledge.profiles.replay import HostPiece, StepReplay
from compilescope.knowledge.profiles.savings import HALF, left_of_kernels, savings
from compilescope.knowledge.profiles.step import Wait, waits_of
from compilescope.knowledge.profiles.trace import Trace, TraceSpan

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
_ONLY_COPIES = re.compile(
    r"triton_\w+?_fused(?:_(?:clone|copy|contiguous|view|_unsafe_view|permute|transpose|t|expand"
    r"|slice|select|squeeze|unsqueeze|reshape))+_\d+$"
)
_PLAIN_COPY = "direct_copy_kernel"
"""Eager mode's kernel that copies without another dtype: within a convolution, another layout."""
_DOUBLE = re.compile(r"\bdouble\b|f64|dgemm|d884|nvjet_d", re.IGNORECASE)
"""Names of cuBLAS, CUTLASS and eager mode's templates; Hopper's products of float64 are
`cutlass_80_tensorop_d884gemm_...` and `sm90_xmma_gemm_f64f64_...`."""
_DISPATCH = ("launches", "guards", "uncompiled", "optimizer", "python")
"""What the host does on its way to a launch: it costs nothing while the host is ahead."""
_WHOLE_CALLS: tuple[CauseId, ...] = ("sync", "transfer", "copy")
_AMPERE = 8
"""The first generation (compute capability) whose tensor cores take TF32."""
_OWN_LINE = 0.5
"""Of the host's time in Python. Chosen: a line that takes less is not where it goes."""
_MOST_LINES = 3
"""And names, of one cause. Chosen: what a sentence names."""


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
    saves_us: float = 0.0
    """By which a step would be shorter without it, estimated; it may be more than the time that is
    its own, or nothing if other work hides it."""


class _TimePiece(NamedTuple):
    cause: CauseId | None
    us: float
    at: UserLine | None = None
    name: str = ""


def causes_of(
    trace: Trace,
    places: StepPlaces,
    step_us: float | None = None,
    matmul_precision: str = "",
    roof: Roof | None = None,
) -> list[Cause]:
    """Those that take a share worth a word, or save one: the one that saves most comes first."""
    if not trace.steps:
        return []
    calls = Calls(trace, places)
    claims = _Claims(trace, calls, places, matmul_precision)
    waits = waits_of(trace, step_us)
    pieces = [claims.wait(wait) for wait in waits]
    kernels = claims.kernels()
    if trace.device:
        pieces = claims.with_lost_lead(pieces) + kernels
    count = len(trace.steps)
    total = step_us or (trace.window[1] - trace.window[0]) / count
    pieces = _with_lines(pieces, places)
    found = _grouped(pieces, count, total)
    if trace.device:
        found = [_gained(cause, trace, total, count) for cause in found]
        replay = StepReplay(trace, step_us)
        host = [claims.on_replay(piece) for piece in replay.pieces]
        causes = [piece.cause for piece in kernels]
        left = left_of_kernels(replay.kernels, causes, roof, matmul_precision)
        saved = savings(replay, [piece.cause for piece in host], causes, left, LEAST * total)
        scale = total / replay.step_us if replay.step_us else 1.0
        found += _hidden(found, saved, _with_lines(host, places))
        found = [_saving(cause, saved.get(cause.cause, 0.0) * scale) for cause in found]
    else:
        halved = {"float64": 1 - HALF}
        found = [_saving(cause, cause.us * halved.get(cause.cause, 1.0)) for cause in found]
    told = (c for c in found if max(c.share, c.saves_us / total) >= LEAST)
    return sorted(told, key=lambda cause: (-cause.saves_us, -cause.us))


class _Claims:
    """Which cause takes a piece."""

    def __init__(
        self, trace: Trace, calls: Calls, places: StepPlaces, matmul_precision: str
    ) -> None:
        self._trace, self._calls = trace, calls
        self._generated = {place.name: place for place in places.generated}
        major = max((int(d.get("computeMajor", 0)) for d in trace.devices), default=0)
        self._misses_tf32 = matmul_precision == "highest" and major >= _AMPERE
        self._launches = trace.launches
        self._done_in: dict[int, set[CauseId | None]] = defaultdict(set)
        """The causes of what the device does for a call."""
        self._to_device = {
            id(call.span)
            for span in trace.device
            if "HtoD" in span.name and (call := self._call_of(span)) is not None
        }

    def kernels(self) -> list[_TimePiece]:
        """What the device does, of all steps together."""
        found = []
        for span in self._trace.asked:
            call, piece = self._call_of(span), self._kernel(span)
            found.append(piece)
            if call is not None:
                self._done_in[id(call.span)].add(piece.cause)
        return found

    def on_replay(self, piece: HostPiece) -> _TimePiece:
        """Of what the host does, whether or not the device waits for it. A call that does nothing
        but wait or copy would go as a whole."""
        lane, segment = piece
        call = self._calls.at(lane, segment.start)
        inside = call is not None and segment.start < call.span.end
        done = self._done_in.get(id(call.span), set()) if call is not None and inside else set()
        for cause in _WHOLE_CALLS:
            if done == {cause}:
                return self._piece(cause, piece.us, call)
        return self.wait(Wait(segment.work, piece.us, segment.start, lane))

    def with_lost_lead(self, pieces: list[_TimePiece]) -> list[_TimePiece]:
        """Without its synchronisations the host would have as much more time for its way to the
        launches as it waits in them. What the device waits for that way is due to them, up to so
        much: all of it if the host is the quicker one."""
        start, end = self._trace.steps[0].start, self._trace.steps[-1].end
        syncs = [s for s in self._trace.host if is_sync(s) and start <= s.start < end]
        waited = sum(span.duration for span in syncs)
        known = sum(piece.us for piece in pieces if piece.cause in ("sync", "transfer"))
        dispatch = sum(piece.us for piece in pieces if piece.cause in _DISPATCH)
        moved = min(dispatch, max(waited - known, 0.0))
        if not known or not moved:
            return pieces  # No wait of the device follows a synchronisation.
        left = 1 - moved / dispatch
        pieces = [p._replace(us=p.us * left) if p.cause in _DISPATCH else p for p in pieces]
        lost = [self._lost(span, moved * span.duration / waited) for span in syncs]
        return [*pieces, *lost]

    def _lost(self, sync: TraceSpan, us: float) -> _TimePiece:
        return self._synced(self._calls.at(sync.lane, sync.start), us)

    def _synced(self, call: StepCall | None, us: float) -> _TimePiece:
        inward = call is not None and id(call.span) in self._to_device
        return self._piece("transfer" if inward else "sync", us, call)

    def wait(self, wait: Wait) -> _TimePiece:
        begin = wait.start if wait.sync is None else wait.sync
        call = self._calls.at(wait.lane, begin)
        if wait.part == "sync":
            return self._synced(call, wait.us)
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
        work = device_work(span)
        cause: CauseId | None = None
        if work == "generated" and span.name in self._generated:
            double = self._generated[span.name]
            return _TimePiece("float64", span.duration, double.at, double.name)
        if "float64" in place.dtypes or _DOUBLE.search(span.name):
            cause = "float64"
        elif "HtoD" in span.name or "DtoH" in span.name:
            cause = "transfer" if "HtoD" in span.name else "sync"
        elif work == "collective":
            cause = "collective"
        elif _changes_layout(span, place):
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


def _changes_layout(span: TraceSpan, place: CallPlace) -> bool:
    if _LAYOUTS.search(span.name) or _ONLY_COPIES.match(span.name):
        return True
    return "convolution" in place.name.lower() and _PLAIN_COPY in span.name


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


def _hidden(
    found: Sequence[Cause], saved: Mapping[str, float], host: Sequence[_TimePiece]
) -> list[Cause]:
    """What has no time of its own, since the device waits for something else too, and yet saves
    some."""
    known = {cause.cause for cause in found}
    own = [piece for piece in host if piece.cause in saved and piece.cause not in known]
    return [
        msgspec.structs.replace(cause, us=0.0, share=0.0) for cause in _grouped(own, 1, math.inf)
    ]


def _saving(cause: Cause, us: float) -> Cause:
    return msgspec.structs.replace(cause, saves_us=us)


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
