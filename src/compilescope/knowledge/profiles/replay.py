"""What a step would take without something: the host's and the device's time played again, with
what a trace tells of who waits for whom.

The host does its pieces one after the other. Work of the device begins when it was launched and
what ended before it has ended. A host that waits for the device continues when that is done. The
steps are played twice, and the second time counts: what a host gains in the first one is its lead.

The host is slower while it is watched: each piece is shortened by the same time, so much that the
step takes what was measured without the profiler.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import median
from typing import NamedTuple

from compilescope.knowledge.profiles.calls import HostThread, Segment
from compilescope.knowledge.profiles.trace import Trace, TraceSpan

_LATENCY_US = 5.0
"""From a launch to a device that is idle, where none was seen (H200, torch 2.11: 4 to 8 µs)."""
_GAP_US = 1.0
"""Between two kernels in the queue, likewise."""
_USUAL_LAUNCH_US, _TIMES_USUAL = 7.0, 3
"""A launch of a kernel under the profiler (H200, torch 2.11: the middle one of six traces). Chosen:
one that takes three times longer, while the device is behind, waits for room in the queue."""
_NEAR = 0.002
"""Of the step. Chosen: near enough to what was measured."""
_WATCHING_US = 4.0
"""For which the profiler notes a piece (H200, torch 2.11: 2.7 to 8.6 µs in six traces)."""
_NEAR_US = 0.02
"""Of that. Chosen: less than a hundredth of it."""
_TRIES = 40
"""Chosen: halvings from a piece of hours to that; a damaged record may have longer ones."""
_END, _PIECE, _LAUNCH, _START, _EMPTY_END = range(5)
"""In this order, of what happens at one time; the last one: of work that takes no time."""


class HostPiece(NamedTuple):
    """What the host does for a time, on whichever of its threads."""

    lane: int | str
    segment: Segment

    @property
    def us(self) -> float:
        return self.segment.end - self.segment.start


class _Wait(NamedTuple):
    """A piece that ends when the device has come so far."""

    piece: int
    own: float
    """What the host takes itself, afterwards."""
    came: float
    """When the device had come so far."""
    ended: int = 0
    """It waits for so many works of these steps to end, the last of which has this index; from the
    end, if they are of the steps before."""
    copy: int = -1
    """It waits for this work to begin instead."""


class _Work(NamedTuple):
    """A kernel or a copy."""

    us: float
    device: int
    launch: int
    """-1: it is not in the record."""
    latency: float
    gap: float


_Point = tuple[float, int, int]
"""A time, what happens then, and to which."""


class StepReplay:
    """The steps of a trace of a device."""

    def __init__(self, trace: Trace, step_us: float | None = None) -> None:
        self.steps = len(trace.steps)
        self.pieces = _host_pieces(trace)
        self.kernels = sorted(trace.asked, key=lambda span: span.start)
        self._device = trace.device
        self._begin = trace.steps[0].start
        self._ready = trace.window[0]
        """When the device was done with what was asked for before."""
        self._durations = [piece.us for piece in self.pieces]
        launches, self._launched_in = self._launches(trace)
        self._works = self._queued(launches)
        self._waits = self._host_waits()
        self._points = self._in_order(launches)
        watched = self._play(self._kept(0.0, {}), {})
        self.profiled_us = watched
        """A step of the record, played again with nothing left out."""
        self._each = self._time_of_watching(step_us) if step_us else 0.0
        self.step_us = self.without({}, {})

    def without(self, host: Mapping[int, float], device: Mapping[int, float]) -> float:
        """What a step takes if only these shares are left of these pieces and kernels, by index. Of
        a wait nothing is left, whatever the share."""
        return self._play(self._kept(self._each, host), device, host)

    def _kept(self, each: float, host: Mapping[int, float]) -> list[float]:
        """What each piece takes."""
        kept = [us - each if us > each else 0.0 for us in self._durations]
        for piece, left in host.items():
            kept[piece] *= left
        return kept

    def _time_of_watching(self, step_us: float) -> float:
        """Of each piece of the host."""
        floor = self._play(self._kept(max(self._durations, default=0.0), {}), {})
        wanted = max(step_us, floor) * (1 + _NEAR)
        # A device that is busy all the time hides how much it is.
        least = self._play(self._kept(_WATCHING_US, {}), {})
        low = _WATCHING_US if least >= wanted * (1 - 2 * _NEAR) else 0.0
        if (least if low else self.profiled_us) <= wanted:
            return low
        high = max(self._durations)
        for _ in range(_TRIES):
            if high - low <= _NEAR_US:
                break
            middle = (low + high) / 2
            if self._play(self._kept(middle, {}), {}) > wanted:
                low = middle
            else:
                high = middle
        return high

    def _play(
        self,
        host: Sequence[float],
        device: Mapping[int, float],
        gone: Mapping[int, float] | None = None,
    ) -> float:
        """The mean step of the second time."""
        until = [0.0, *accumulate(host)]
        works = self._works
        if device:
            works = list(works)
            for index, left in device.items():
                gap = works[index].gap if left else 0.0
                works[index] = works[index]._replace(us=works[index].us * left, gap=gap)
        now = self._begin
        ended: dict[int, float] = defaultdict(lambda: self._ready)
        started = [0.0] * len(works)
        launched: dict[int, float] = {}
        ends: list[tuple[float, float]] = []
        finished: list[float] = []
        for _ in range(2):
            done = 0
            before, finished = finished, []
            for _, kind, index in self._points:
                if kind == _LAUNCH:
                    piece = self._launched_in[index]
                    if piece > done:
                        now += until[piece] - until[done]
                        done = piece
                    launched[index] = now
                elif kind == _START:
                    work = works[index]
                    begin = ended[work.device] + work.gap
                    if work.launch >= 0 and device.get(index) != 0.0:
                        begin = max(begin, launched[work.launch] + work.latency)
                    started[index] = begin
                elif kind == _PIECE:
                    wait = self._waits[index]
                    if gone and wait.piece in gone:
                        continue
                    now += max(until[wait.piece] - until[done], 0.0)
                    done = max(wait.piece + 1, done)
                    came = self._come(wait, started, before, finished)
                    watching = self._durations[wait.piece] - host[wait.piece]
                    now = max(now, came) + max(wait.own - watching, 0.0)
                else:
                    work = works[index]
                    end = max(ended[work.device], started[index] + work.us)
                    ended[work.device] = end
                    finished.append(max(end, finished[-1]) if finished else end)
            now += until[-1] - until[done]
            ends.append((now, max(ended.values(), default=now)))
        (first, first_device), (second, second_device) = ends
        return max(second - first, second_device - first_device) / self.steps

    def _come(
        self,
        wait: _Wait,
        started: Sequence[float],
        before: Sequence[float],
        finished: Sequence[float],
    ) -> float:
        """When the device is as far as the host waits for. What was asked for before the first of
        these steps ended when the record says."""
        if wait.copy >= 0:
            return started[wait.copy]
        if wait.ended >= 0 and finished:
            return finished[min(wait.ended, len(finished) - 1)]
        return before[wait.ended] if -len(before) <= wait.ended < 0 else wait.came

    def _launches(self, trace: Trace) -> tuple[dict[int, TraceSpan], list[int]]:
        """By their number, and the pieces that they begin."""
        known = trace.launches
        wanted = {
            s.correlation: known[s.correlation] for s in self.kernels if s.correlation in known
        }
        spans = sorted(wanted.values(), key=lambda span: span.start)
        starts = [piece.segment.start for piece in self.pieces]
        pieces = [max(bisect_right(starts, span.start) - 1, 0) for span in spans]
        return dict(enumerate(spans)), pieces

    def _queued(self, launches: dict[int, TraceSpan]) -> list[_Work]:
        """With what each waited for."""
        numbers = {span.correlation: number for number, span in launches.items()}
        before = self._ended_before()
        late, queued = [], []
        for span, end in zip(self.kernels, before, strict=True):
            launch = launches.get(numbers.get(span.correlation, -1))
            if launch is not None and launch.start > end:
                late.append(span.start - launch.start)
            elif launch is not None and launch.start + _LATENCY_US < end:
                queued.append(span.start - end)
        latency = median(late) if late else _LATENCY_US
        usual = median(queued) if queued else _GAP_US
        found = []
        for span, end in zip(self.kernels, before, strict=True):
            number = numbers.get(span.correlation, -1)
            gap = max(span.start - end, 0.0)
            after = max(span.start - launches[number].start, 0.0) if number >= 0 else 0.0
            if number >= 0 and launches[number].start + latency > end + usual:
                gap = min(gap, usual)  # It waited for its launch.
            else:
                after = min(after, latency)
            found.append(_Work(span.duration, span.device, number, after, gap))
        return found

    def _ended_before(self) -> list[float]:
        """When the device had done what ended before each of its works began."""
        ends = sorted((span.end, span.device) for span in self.kernels)
        last: dict[int, float] = {}
        found, index = [], 0
        for span in self.kernels:
            while index < len(ends) and ends[index][0] <= span.start:
                last[ends[index][1]] = ends[index][0]
                index += 1
            found.append(min(max(last.get(span.device, self._ready), self._ready), span.start))
        return found

    def _host_waits(self) -> list[_Wait]:
        """A copy from memory that is not pinned keeps the host until it begins; a launch, while the
        queue of the device is full."""
        ends = sorted(span.end for span in self.kernels)
        own = {id(span) for span in self.kernels}
        earlier = sorted(span.end for span in self._device if id(span) not in own)
        full = self._full_queue()
        copies = {
            self._launched_in[work.launch]: index
            for index, work in enumerate(self._works)
            if work.launch >= 0 and self.kernels[index].kind == "gpu_memcpy"
        }
        found = []
        for index, (_, segment) in enumerate(self.pieces):
            if segment.work == "sync" or index in full:
                done = bisect_right(ends, segment.end) - 1
                came = ends[done] if done >= 0 else segment.start
                if done < 0:
                    past = bisect_right(earlier, segment.end)
                    done = past - len(earlier) - 1
                    came = earlier[past - 1] if past else segment.start
                came = min(max(came, segment.start), segment.end)
                found.append(_Wait(index, segment.end - came, came, done))
            elif segment.work == "launch" and index in copies:
                copy = self.kernels[copies[index]]
                if segment.start < copy.start < segment.end:
                    own_us = segment.end - copy.start
                    found.append(_Wait(index, own_us, copy.start, copy=copies[index]))
        return found

    def _full_queue(self) -> set[int]:
        """The pieces that launch what the device is not ready for, and take far longer than usual:
        of a CUDA graph, than most."""
        launching: dict[str, list[float]] = defaultdict(list)
        for _, segment in self.pieces:
            if segment.work == "launch":
                launching[segment.name].append(segment.end - segment.start)
        long = {
            name: _TIMES_USUAL
            * (median(times) if "Graph" in name else min(median(times), _USUAL_LAUNCH_US))
            for name, times in launching.items()
        }
        found = set()
        for work, span, end in zip(self._works, self.kernels, self._ended_before(), strict=True):
            if work.launch >= 0 and span.kind == "kernel":
                segment = self.pieces[self._launched_in[work.launch]].segment
                us = segment.end - segment.start
                if us > long.get(segment.name, us) and end >= segment.end:
                    found.add(self._launched_in[work.launch])
        return found

    def _in_order(self, launches: dict[int, TraceSpan]) -> list[_Point]:
        found: list[_Point] = [(span.start, _LAUNCH, n) for n, span in launches.items()]
        found += [
            (self.pieces[wait.piece].segment.end, _PIECE, n) for n, wait in enumerate(self._waits)
        ]
        for index, span in enumerate(self.kernels):
            number = self._works[index].launch
            # The clocks of host and device may differ by some microseconds.
            asked = launches[number].start if number >= 0 else span.start
            start = max(span.start, asked)
            found.append((start, _START, index))
            end = max(span.end, start)
            found.append((end, _EMPTY_END if end == start else _END, index))
        return sorted(found)


def _host_pieces(trace: Trace) -> list[HostPiece]:
    """Of the thread that takes the steps; while it tells nothing, of the others that launch: it
    waits for the backward pass."""
    main = trace.steps[0].lane
    window = trace.steps[0].start, trace.steps[-1].end
    lanes = {span.lane for span in trace.launches.values()} | {main}
    threads: dict[int | str, list[TraceSpan]] = defaultdict(list)
    for span in trace.host:
        if span.lane in lanes and span.kind != "python_function":
            threads[span.lane].append(span)
    own = HostThread(threads.pop(main, [])).during(window)
    others = [
        HostPiece(lane, segment)
        for lane, spans in threads.items()
        for segment in HostThread(spans).during(window)
        if segment.work != "python"
    ]
    return _filled(main, own, _one_at_a_time(others))


def _one_at_a_time(pieces: list[HostPiece]) -> list[HostPiece]:
    """Of two at a time the one that began first."""
    found: list[HostPiece] = []
    at = -math.inf
    for lane, segment in sorted(pieces, key=lambda piece: piece.segment.start):
        if segment.end > at:
            found.append(HostPiece(lane, segment._replace(start=max(segment.start, at))))
            at = segment.end
    return found


def _filled(main: int | str, own: Sequence[Segment], others: list[HostPiece]) -> list[HostPiece]:
    found: list[HostPiece] = []
    first = 0
    for segment in own:
        at = segment.start
        while first < len(others) and others[first].segment.end <= segment.start:
            first += 1
        if segment.work == "python":
            index = first
            while index < len(others) and others[index].segment.start < segment.end:
                lane, other = others[index]
                low, high = max(other.start, at), min(other.end, segment.end)
                if low > at:
                    found.append(HostPiece(main, segment._replace(start=at, end=low)))
                if high > low:
                    found.append(HostPiece(lane, other._replace(start=low, end=high)))
                    at = high
                index += 1
        if at < segment.end:
            found.append(HostPiece(main, segment._replace(start=at)))
    return found
