"""Where the time of compiled regions goes: inside compiled graphs, or outside them.

A region is timed by a pair of functions that torch itself calls when compiled code is entered and
left, so no frame of ours stands in the user's stack. A graph is timed by a wrapper around what its
backend returned. Times are kept in a list while a call lasts and added up when it ends: a call in
which anything compiled is warm-up, and only its end tells.
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
from typing import TYPE_CHECKING, Any

from compilescope.model.stack import CodeRef
from compilescope.torchapi.stacks import code_ref, region
from compilescope.torchapi.totals import Call, GraphTotals, RegionTotals

if TYPE_CHECKING:
    from compilescope.torchapi.hook import Sink

_MOST_WAITING = 4096
"""Graph calls that wait for their region call to end; more are settled as a part of the call."""
_SHORTEST_PERIOD_NS = 2_000_000_000
_PERIOD_SHARE = 16
"""Totals are written when a sixteenth of the run has passed: a long run writes ever less often."""
_live: weakref.WeakSet[Timing] = weakref.WeakSet()


class _Local(threading.local):
    def __init__(self) -> None:
        self.call = Call()


class Timing:
    """The clock of one capture."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._local = _Local()
        self._compiles = [0]
        self._graphs: list[GraphTotals] = []
        self._regions: list[RegionTotals] = []
        self._enters: weakref.WeakKeyDictionary[Any, Callable[[], Any]] = (
            weakref.WeakKeyDictionary()
        )
        self._wrappers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._began = time.perf_counter_ns()
        self._due = self._began + _SHORTEST_PERIOD_NS
        self._writing = threading.Lock()
        _live.add(self)

    def note_compilation(self) -> None:
        """Whatever region calls are under way, in this thread or another, are warm-up."""
        self._compiles[0] += 1

    def time_existing_regions(self) -> None:
        """Functions that were compiled before we came are entered like any other."""
        module = sys.modules.get("torch._dynamo.eval_frame")
        kind = getattr(module, "OptimizeContext", None)
        if kind is not None:
            for value in gc.get_objects():
                if type(value) is kind:  # isinstance would ask the user's proxies.
                    self.time_region(value)

    def time_region(self, context: Any) -> None:
        """Time what `context`, the object behind one `torch.compile`, is put around."""
        if not callable(getattr(context, "callback", None)) or context in self._enters:
            return
        totals = RegionTotals(bool(getattr(context, "fullgraph", False)))
        self._regions.append(totals)
        enter = self._enters[context] = self._region_clock(totals)
        context.enter_exit_hooks.append(enter)

    def _region_clock(self, totals: RegionTotals) -> Callable[[], Callable[[], None]]:
        local, compiles, now, settle = self._local, self._compiles, time.perf_counter_ns, self._end

        def leave() -> None:
            end = now()
            call = local.call
            call.depth -= 1
            if call.depth == 0:
                settle(call, end)

        def enter() -> Callable[[], None]:
            call = local.call
            if call.depth:
                # A compiled function within another's eager part belongs to the outer one.
                if not call.region.fullgraph or _is_nested():
                    call.depth += 1
                    return leave
                call.log.clear()
            call.depth = 1
            call.region = totals
            call.owner = None
            call.compiles = compiles[0]
            call.start = now()
            return leave

        return enter

    def time_graph(self, scope: dict[str, Any], name: str, totals: GraphTotals) -> None:
        """Time the compiled graph that generated code calls as the global `name`."""
        call = self._local.call
        wrapper = self._graph_clock(scope[name], totals)
        wrapper._compilescope_home = (scope, name)
        scope[name] = wrapper
        self._wrappers.add(wrapper)
        self._graphs.append(totals)
        if call.depth == 1 and call.region.ref is None:
            call.region.ref = region() or totals.frame

    def _graph_clock(self, graph: Callable[..., Any], totals: GraphTotals) -> Any:
        from torch._dynamo.eval_frame import skip_code

        local, now, settle = self._local, time.perf_counter_ns, self._settle_part

        def timed(*args: Any, **kwargs: Any) -> Any:
            call = local.call
            nested = call.in_graph
            call.in_graph = True
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
                call.in_graph = nested
                if nested:
                    pass  # Its time is that of the graph around it.
                elif call.depth:
                    call.log.append((totals, start, end))
                    if len(call.log) > _MOST_WAITING:
                        settle(call, end)
                else:
                    totals.calls += 1
                    totals.inside_ns += end - start

        # Dynamo must run it as it is, as it does torch's own wrapper around a graph.
        skip_code(timed.__code__)
        return functools.update_wrapper(timed, graph)

    def _end(self, call: Call, end: int) -> None:
        """A region call has ended."""
        try:
            region = call.region
            steady = call.compiles == self._compiles[0]
            if steady:
                region.calls += 1
            else:
                region.warmup_calls += 1
            call.settle(end, steady)
            if region.ref is None:
                region.ref = _entered_code()
            if end > self._due:
                self.write()
        except Exception as error:  # The border of a hook.
            call.log.clear()
            self._sink.fault("timing", error)

    def _settle_part(self, call: Call, end: int) -> None:
        """A call so long that a part of it has to be settled: one that ran for the whole program.

        What follows is judged anew: the rest of such a call need not all be warm-up.
        """
        try:
            call.settle(end, call.compiles == self._compiles[0])
            call.compiles = self._compiles[0]
            call.start = end
        except Exception as error:
            call.log.clear()
            self._sink.fault("timing", error)

    def write(self) -> None:
        """Write what was added since the last time."""
        if not self._writing.acquire(blocking=False):
            return
        try:
            now = time.perf_counter_ns()
            self._due = now + max(_SHORTEST_PERIOD_NS, (now - self._began) // _PERIOD_SHARE)
            for totals in self._regions:
                if totals.total_ns or totals.warmup_ns:
                    self._sink.emit(totals.take())
            for graph in self._graphs:
                if graph.calls or graph.after_ns:
                    self._sink.emit(graph.take(), compile_id=graph.compile_id)
        finally:
            self._writing.release()

    def close(self) -> None:
        """Write the rest and take every clock off again."""
        self.write()
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
        for totals in self._regions:
            totals.clear()
        for graph in self._graphs:
            graph.clear()


def _wrapper_frame(frame: FrameType | None) -> FrameType | None:
    """The nearest frame, outwards, in which torch entered compiled code."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "compile_wrapper" and code.co_filename.endswith("eval_frame.py"):
            return frame
        frame = frame.f_back
    return None


def _is_nested() -> bool:
    """Is there a region call around this one?

    A fullgraph call may end without being left: torch 2.13 raises "found no compiled frames"
    before it cleans up.
    """
    entering = _wrapper_frame(sys._getframe(2))
    return entering is not None and _wrapper_frame(entering.f_back) is not None


def _entered_code() -> CodeRef | None:
    """What the region that is being left runs, where no graph of it said so."""
    frame = _wrapper_frame(sys._getframe(2))
    function: Any = frame.f_locals.get("fn") if frame is not None else None
    module = getattr(function, "__self__", None)
    function = getattr(type(module), "forward", function) if module is not None else function
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    return code_ref(code) if isinstance(code, CodeType) else None


def _after_fork() -> None:
    for timing in list(_live):
        timing.after_fork()


os.register_at_fork(after_in_child=_after_fork)
