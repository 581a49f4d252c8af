"""Where the time of compiled regions goes: inside compiled graphs, or outside them.

A region is timed by a pair of functions that torch itself calls when compiled code is entered and
left, so no frame of ours stands in the user's stack. A graph is timed by a wrapper around what its
backend returned. Both run at every call, so they are plain additions, written out where they are
needed; whatever is rare is a method.

Time outside graphs goes to the last graph that a break ended; before there is one, to the region.
Sums are plain integers: under the interpreter's lock an addition is whole, so threads share them.
Where the process uses a GPU, the same is added up by its own clock (`device_times`).
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from compilescope.base.processes.interruptions import let_through
from compilescope.instrument.torchapi.sinks import Sink
from compilescope.instrument.torchapi.stacks import code_ref, origin, region
from compilescope.instrument.torchapi.times.device_times import DeviceMarks, Moments, device_moments
from compilescope.instrument.torchapi.times.time_totals import GraphTotals, RegionTotals
from compilescope.record.stack import CodeRef


class RegionCall:
    """The region call that one thread is in. Invariant: all time up to `last` has been added."""

    __slots__ = (
        "busy", "depth", "device", "inside_ns", "last", "owner", "region", "start", "warming",
    )  # fmt: skip

    def __init__(self) -> None:
        self.region = RegionTotals(fullgraph=False)
        self.owner = self.region.outside
        """Of whose doing time outside graphs is: the last graph a break ended, or the region."""
        self.depth = 0
        """Regions entered and not left: only the outermost is timed."""
        self.busy = False
        """Graphs are not timed now: one of them runs, or the call is warming up."""
        self.warming = False
        self.device: DeviceMarks | None = None
        """The device's clock, once the process uses one."""
        self.start = self.last = self.inside_ns = 0

    def warm_up(self) -> None:
        """Something compiles: what is left of the call is no steady state."""
        if self.depth and not self.warming:
            self.region.total_ns += self.last - self.start
            self.region.inside_ns += self.inside_ns
            self.busy = self.warming = True

    def end_warm(self, now: int) -> None:
        self.region.warmup_calls += 1
        self.region.warmup_ns += now - self.last
        self.busy = self.warming = False

    @property
    def abandoned(self) -> bool:
        """torch 2.13 raises "found no compiled frames" without leaving a fullgraph region."""
        return self.region.fullgraph and (self.warming or not self.inside_ns) and not self.in_graph

    @property
    def in_graph(self) -> bool:
        return self.busy and not self.warming


_SHORTEST_PERIOD_NS = 2_000_000_000
"""Chosen: what a run that is killed loses of its times, against how often totals are written."""
_PERIOD_SHARE = 16
"""Totals are written when a sixteenth of the run has passed: a long run writes ever less often.
Chosen: so much of its times a killed run may lose."""
_live: weakref.WeakSet[Timing] = weakref.WeakSet()


class _ThreadCall(threading.local):
    """A call for each thread, made when the thread first comes by."""

    def __init__(self, calls: list[RegionCall], device: list[Moments]) -> None:
        self.call = RegionCall()
        if device:
            self.call.device = DeviceMarks(device[0])
        calls.append(self.call)


class Timing:
    """The clock of one capture."""

    def __init__(
        self,
        sink: Sink,
        now: Callable[[], int] = time.perf_counter_ns,
        moments: Callable[[], Moments | None] = device_moments,
    ) -> None:
        self._sink = sink
        self._now = now
        self._moments = moments
        self._calls: list[RegionCall] = []
        self._device: list[Moments] = []
        """The one there is, once the process uses it."""
        self._local = _ThreadCall(self._calls, self._device)
        self._graphs: list[GraphTotals] = []
        self._regions: list[RegionTotals] = []
        self._enters: weakref.WeakKeyDictionary[Any, Callable[[], Any]] = (
            weakref.WeakKeyDictionary()
        )
        self._wrappers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._began = now()
        self._due = [self._began + _SHORTEST_PERIOD_NS]
        self._writing = threading.Lock()
        _live.add(self)

    def note_compilation(self) -> None:
        """Whatever region calls are under way, in this thread or another, are warm-up."""
        for call in self._calls:
            call.warm_up()

    def time_existing_regions(self) -> None:
        """Functions that were compiled before we came are entered like any other."""
        for context in existing_regions():
            self.time_region(context)

    def time_region(self, context: Any) -> None:
        """Time what `context`, the object behind one `torch.compile`, is put around."""
        if not callable(getattr(context, "callback", None)) or context in self._enters:
            return
        totals = RegionTotals(bool(getattr(context, "fullgraph", False)))
        self._regions.append(totals)
        enter = self._enters[context] = self._region_clock(totals)
        context.enter_exit_hooks.append(enter)

    def _region_clock(self, totals: RegionTotals) -> Callable[[], Callable[[], None]]:
        local, now, due, seldom = self._local, self._now, self._due, self._seldom
        outside = totals.outside

        def leave() -> None:
            end = now()
            call = local.call
            if call.depth != 1:
                call.depth = max(call.depth - 1, 0)
                return
            call.depth = 0
            if call.busy:
                call.end_warm(end)
            else:
                call.owner.ns += end - call.last
                totals.calls += 1
                totals.total_ns += end - call.start
                totals.inside_ns += call.inside_ns
                if call.device is not None:
                    call.device.charge(totals, call.owner, False)
            if end > due[0] or not totals.named:
                seldom(totals)

        def enter() -> Callable[[], None]:
            call = local.call
            if call.depth:
                if not call.abandoned:
                    call.depth += 1  # Within another one's eager part: it belongs to that one.
                    return leave
                call.busy = call.warming = False
            call.depth = 1
            call.region = totals
            call.owner = outside
            call.inside_ns = 0
            if call.device is not None:
                call.device.begin()
            call.start = call.last = now()
            return leave

        return enter

    def time_graph(self, scope: dict[str, Any], name: str, totals: GraphTotals) -> None:
        """Time the compiled graph that generated code calls as the global `name`."""
        self._look_for_device()
        wrapper = self._graph_clock(scope[name], totals)
        wrapper._compilescope_home = (scope, name)
        scope[name] = wrapper
        self._wrappers.add(wrapper)
        self._graphs.append(totals)
        call = self._local.call
        if call.depth == 1 and call.region.ref is None:
            call.region.ref = region() or totals.frame

    def _graph_clock(self, graph: Callable[..., Any], totals: GraphTotals) -> Any:
        from torch._dynamo.eval_frame import skip_code

        local, now, breaks, outside = self._local, self._now, totals.breaks, totals.outside

        def timed(*args: Any, **kwargs: Any) -> Any:
            call = local.call
            idle = not call.busy
            call.busy = True
            device = call.device if idle and call.depth else None
            if device is not None:
                device.charge(call.region, call.owner, False)
            start = now()
            try:
                return graph(*args, **kwargs)
            except BaseException as error:
                # From Python 3.11 on this takes our own frame out of the traceback.
                trace = error.__traceback__
                error.__traceback__ = trace and trace.tb_next
                raise
            finally:
                end = now()
                # A graph within a graph is part of that one; what warms up is left out.
                if idle and not call.warming:
                    inside = end - start
                    totals.calls += 1
                    totals.inside_ns += inside
                    if call.depth:
                        call.owner.ns += start - call.last
                        call.last = end
                        call.inside_ns += inside
                        if device is not None:
                            device.charge(call.region, totals, True)
                        if breaks:
                            call.owner = outside
                    call.busy = False

        # Dynamo must run it as it is, as it does torch's own wrapper around a graph.
        skip_code(timed.__code__)
        return functools.update_wrapper(timed, graph)

    def _seldom(self, totals: RegionTotals) -> None:
        """A region was left for the first time, or it is time to write."""
        try:
            if not totals.named:
                totals.named = True
                if totals.ref is None or origin(totals.ref.file) == "torch":
                    totals.ref = entered_code() or totals.ref
            if self._now() > self._due[0]:
                self.write()
        except Exception as error:  # The border of a hook.
            let_through(error)
            self._sink.fault("timing", error)

    def _look_for_device(self) -> None:
        """A graph was compiled: by now the process uses its device, if it ever will."""
        if self._device:
            return
        found = self._moments()
        if found is not None:
            self._device.append(found)
            for call in self._calls:
                call.device = DeviceMarks(found)

    def write(self, *, last: bool = False) -> None:
        """Write what was added since the last time. The last time waits for the device."""
        if not self._writing.acquire(blocking=False):
            return  # Another thread is at it, or we interrupted ourselves: next time.
        try:
            now = self._now()
            self._due[0] = now + max(_SHORTEST_PERIOD_NS, (now - self._began) // _PERIOD_SHARE)
            on_device = bool(self._device)
            for call in self._calls if on_device else ():
                if call.device is not None:
                    call.device.read(wait=last)
            for totals in self._regions:
                if totals.has_news:
                    self._sink.emit(totals.take(on_device=on_device))
            for graph in self._graphs:
                if graph.has_news:
                    body = graph.take(on_device=on_device)
                    self._sink.emit(body, compile_id=graph.compile_id)
        finally:
            self._writing.release()

    def close(self) -> None:
        """Write the rest and take every clock off again."""
        self.write(last=True)
        for context, enter in list(self._enters.items()):
            if enter in context.enter_exit_hooks:
                context.enter_exit_hooks.remove(enter)
        for wrapper in list(self._wrappers):
            scope, name = wrapper._compilescope_home
            if scope.get(name) is wrapper:
                scope[name] = wrapper.__wrapped__

    def after_fork(self) -> None:
        """In the child: what the parent measured is the parent's to write."""
        self._writing = threading.Lock()
        self._device.clear()  # It cannot be used after a fork.
        for call in self._calls:
            call.device = None
        for totals in self._regions:
            totals.clear()
        for graph in self._graphs:
            graph.clear()


def entered_code() -> CodeRef | None:
    """What the region that is being left runs."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != "compile_wrapper":
        frame = frame.f_back
    function: Any = frame.f_locals.get("fn") if frame is not None else None
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    module = getattr(function, "__self__", function)
    if hasattr(type(module), "forward"):
        function = type(module).forward
    code = getattr(function, "__code__", None)
    return code_ref(code) if isinstance(code, CodeType) else None


def _after_fork() -> None:
    for timing in list(_live):
        timing.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def existing_regions() -> list[Any]:
    """The objects behind each `torch.compile` that was called before we came."""
    module = sys.modules.get("torch._dynamo.eval_frame")
    kind = getattr(module, "OptimizeContext", None)
    if kind is None:
        return []
    # An object refers to its class: that spares a list of all objects, half a million beside torch.
    # isinstance would ask the user's proxies.
    return [value for value in gc.get_referrers(kind) if type(value) is kind]
