"""The bar of a step: what the device did, and why it did nothing.

Kernels' times are the device's own. The host is slower while it is watched: where the step was also
timed without the profiler, the difference is taken from the device's waiting, from each piece that
the profiler noted the same. All parts together are the step.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from compilescope.knowledge.profiles.calls import (
    DEVICE_WORK,
    HOST_WORK,
    Calls,
    DeviceWork,
    HostThread,
    HostWork,
    StepPlaces,
    UserLine,
    device_work,
    is_sync,
)
from compilescope.knowledge.profiles.trace import (
    Interval,
    Trace,
    TraceSpan,
    length,
    union,
    within,
    without,
)

Part = Literal[DeviceWork, HostWork, "latency"]
"""`latency`: the next kernel was asked for in time, and the device had not begun it."""
_LEAD_US = 20.0
"""A host that was let go by a synchronisation this long before the device's last work ended, or
later, had no lead left. Chosen: about two launches."""


class Wait(NamedTuple):
    """Time in which the device had nothing to do, or in which the host was the device."""

    part: Part
    us: float
    start: float = 0.0
    lane: int | str = 0
    sync: float | None = None
    """When the synchronisation began that took the host's lead."""


class StepTime(msgspec.Struct, frozen=True):
    """One part of the step."""

    part: Part
    us: float
    share: float


class SyncPoint(msgspec.Struct, frozen=True):
    """A place where the host waited for the device."""

    name: str
    """What asked for it: an operator, or the driver's own call."""
    calls: int
    waited_us: float
    """By the host, a step."""
    idle_us: float
    """By the device afterwards, a step, under the profiler."""
    at: UserLine | None = None
    """The user's line that calls it."""


class StepBar(msgspec.Struct, frozen=True):
    """The mean step of a window."""

    steps: int
    step_us: float
    """Without the profiler where that was measured, else in the window."""
    profiled_us: float
    busy_us: float
    parts: list[StepTime]
    """In their order on the bar; they add up to the step."""
    syncs: list[SyncPoint]
    kernels: float = 0.0
    """A step; 0 on the CPU."""


def bar_of(
    trace: Trace, step_us: float | None = None, places: StepPlaces | None = None
) -> StepBar | None:
    """None where the trace has no whole step. `step_us`: measured without the profiler; `places`:
    where operators are called."""
    if not trace.steps:
        return None
    window = trace.window
    count = len(trace.steps)
    if not trace.device:
        return _host_bar(trace, window, step_us)
    busy = _busy(trace.device, window)
    parts: dict[Part, float] = {part: length(pairs) / count for part, pairs in busy.items()}
    busy_us = sum(parts.values())
    profiled_us = (window[1] - window[0]) / count
    waits = _Waits(trace, window)
    total = step_us if step_us is not None else profiled_us
    total = max(total, busy_us)
    idle = _unwatched(waits.pieces, (total - busy_us) * count)
    for wait in idle:
        parts[wait.part] = parts.get(wait.part, 0.0) + wait.us / count
    times = [StepTime(part, us, us / total) for part, us in parts.items() if us > 0]
    kernels = sum(span.kind == "kernel" for span in trace.asked)
    points = waits.points(count, Calls(trace, places or StepPlaces()))
    return StepBar(count, total, profiled_us, busy_us, times, points, kernels / count)


def waits_of(trace: Trace, step_us: float | None = None) -> list[Wait]:
    """Why the device waits in all steps together, in pieces; without a device, all that the thread
    does."""
    if not trace.steps:
        return []
    window = trace.window
    count = len(trace.steps)
    if not trace.device:
        lane, total = trace.steps[0].lane, step_us or (window[1] - window[0]) / count
        scale = total * count / (window[1] - window[0])
        return [
            Wait(segment.work, (segment.end - segment.start) * scale, segment.start, lane)
            for segment in _main_thread(trace).during(window)
        ]
    busy_us = sum(length(pairs) for pairs in _busy(trace.device, window).values())
    total = max((step_us or 0.0) * count or window[1] - window[0], busy_us)
    return _unwatched(_Waits(trace, window).pieces, total - busy_us)


def _unwatched(pieces: Sequence[Wait], total: float) -> list[Wait]:
    """Waiting as it would be without the profiler: `total` altogether. Noting a piece takes the
    profiler the same time each, so each is less by that, or gone."""
    excess = sum(wait.us for wait in pieces) - total
    each = _equal_share([wait.us for wait in pieces if wait.part != "latency"], excess)
    # That one is the device's: the profiler is not in it.
    left = [w if w.part == "latency" else w._replace(us=max(w.us - each, 0.0)) for w in pieces]
    whole = sum(wait.us for wait in left)
    # Faster under the profiler, by chance, or shorter than what the device alone took: all alike.
    stretch = total / whole if whole else 1.0
    return [wait._replace(us=wait.us * stretch) for wait in left]


def _equal_share(amounts: Sequence[float], wanted: float) -> float:
    """So much of each, or all of it where it is less, makes what is wanted."""
    if wanted <= 0:
        return 0.0
    left = len(amounts)
    for amount in sorted(amounts):
        if amount * left >= wanted:
            return wanted / left
        wanted -= amount
        left -= 1
    return max(amounts, default=0.0)


def _host_bar(trace: Trace, window: Interval, step_us: float | None) -> StepBar:
    """Without a device: what the thread that takes the steps does. Compiled graphs run within
    themselves, and their library calls are operators within them."""
    times: dict[Part, float] = defaultdict(float)
    for segment in _main_thread(trace).during(window):
        times[segment.work] += segment.end - segment.start
    count = len(trace.steps)
    profiled_us = (window[1] - window[0]) / count
    total = step_us if step_us is not None else profiled_us
    scale = total / profiled_us / count
    shares = {part: us * scale for part, us in times.items()}
    busy_us = sum(shares.get(part, 0.0) for part in ("generated", "library", "operator"))
    order = [part for part in (*DEVICE_WORK, *HOST_WORK) if shares.get(part, 0.0) > 0]
    parts = [StepTime(part, shares[part], shares[part] / total) for part in order]
    return StepBar(count, total, profiled_us, busy_us, parts, [])


def _main_thread(trace: Trace) -> HostThread:
    lane = trace.steps[0].lane
    spans = [s for s in trace.host if s.lane == lane and s.kind != "python_function"]
    return HostThread(spans, on_cpu=True)


def _busy(device: Iterable[TraceSpan], window: Interval) -> dict[Part, list[Interval]]:
    """Times of each kind of work, none counted twice."""
    times: dict[DeviceWork, list[Interval]] = defaultdict(list)
    for span in device:
        times[device_work(span)].append((span.start, span.end))
    found: dict[Part, list[Interval]] = {}
    taken: list[Interval] = []
    for work in DEVICE_WORK:
        own = within(union(times[work]), window)
        found[work] = without(own, taken)
        taken = union([*taken, *own])
    return found


class _Waits:
    """Why the device had nothing to do, gap by gap."""

    def __init__(self, trace: Trace, window: Interval) -> None:
        self._launches = trace.launches
        threads: dict[int | str, list[TraceSpan]] = defaultdict(list)
        for span in trace.host:
            if span.kind != "python_function":
                threads[span.lane].append(span)
        self._threads = {lane: HostThread(spans) for lane, spans in threads.items()}
        self._syncs = {
            lane: [span for span in spans if is_sync(span)] for lane, spans in threads.items()
        }
        self._main = trace.steps[0].lane
        self.pieces: list[Wait] = []
        """Each begins or ends with something that the profiler noted."""
        self._sync_idle: dict[float, float] = defaultdict(float)
        """By the beginning of the synchronisation."""
        self._window = window
        self._on_host = trace.steps[0].start, trace.steps[-1].end
        self._walk(trace.device)

    def points(self, steps: int, calls: Calls) -> list[SyncPoint]:
        waited: dict[tuple[str, UserLine | None], list[TraceSpan]] = defaultdict(list)
        for lane, spans in self._syncs.items():
            for span in spans:
                if self._on_host[0] <= span.start < self._on_host[1]:
                    call = calls.at(lane, span.start)
                    at = call.place.at if call is not None else None
                    waited[self._asked_by(lane, span), at].append(span)
        found = [
            SyncPoint(
                name,
                len(spans),
                sum(span.duration for span in spans) / steps,
                sum(self._sync_idle.get(span.start, 0.0) for span in spans) / steps,
                at,
            )
            for (name, at), spans in waited.items()
        ]
        return sorted(found, key=lambda point: -(point.idle_us + point.waited_us))

    def _walk(self, device: list[TraceSpan]) -> None:
        at = self._window[0]
        for span in device:
            if span.end <= self._window[0] or span.start >= self._window[1]:
                continue
            if span.start > at:
                self._explain((at, span.start), span)
            at = max(at, span.end)
        if at < self._window[1]:
            self._tell(self._main, (at, self._window[1]))

    def _explain(self, gap: Interval, following: TraceSpan) -> None:
        launch = self._launches.get(following.correlation)
        if launch is None:
            self.pieces.append(Wait("latency", gap[1] - gap[0], gap[0]))
            return
        asked = min(max(launch.end, gap[0]), gap[1])
        self.pieces.append(Wait("latency", gap[1] - asked, launch.start, launch.lane))
        if asked <= gap[0]:
            return
        sync = self._last_sync(launch, gap[0])
        if sync is not None:
            own = self._threads[launch.lane].during((gap[0], asked))
            self.pieces += [
                Wait("sync", segment.end - segment.start, segment.start, launch.lane, sync.start)
                for segment in own
            ]
            self._sync_idle[sync.start] += asked - gap[0]
            return
        self._tell(launch.lane, (gap[0], asked))

    def _tell(self, lane: int | str, window: Interval) -> None:
        for segment in self._threads[lane].during(window):
            us = segment.end - segment.start
            self.pieces.append(Wait(segment.work, us, segment.start, lane))

    def _last_sync(self, launch: TraceSpan, idle_since: float) -> TraceSpan | None:
        """The synchronisation that took the host's lead, if one did."""
        syncs = self._syncs.get(launch.lane, [])
        before = bisect_right(syncs, launch.start, key=lambda span: span.start)
        if before and syncs[before - 1].end >= idle_since - _LEAD_US:
            return syncs[before - 1]
        return None

    def _asked_by(self, lane: int | str, sync: TraceSpan) -> str:
        """The operator around it."""
        thread = self._threads.get(lane)
        before = thread.during((sync.start - 0.5, sync.start)) if thread is not None else []
        return next((s.name for s in before if s.work == "operator"), sync.name)
