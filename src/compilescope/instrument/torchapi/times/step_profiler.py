"""Has torch's profiler record a few steps, once the program has settled.

A step is the time from one outermost call of a compiled region to the next call of the same kind
(`step_kinds`): the backward pass, the optimizer and the loading of data are in it. Where an epoch
ends in between, or another loop runs, it is none: the recording begins anew.

Until nothing has been compiled for some steps, nothing is done but counting; then some steps are
timed without the profiler (with events of the device, where there is one), and as many are recorded
by it. One more is recorded with stacks, for the lines that call operators; its times are not used.
What the program does afterwards is left alone.

Like the clock of timed runs, it is called by torch itself when compiled code is entered, so no
frame of ours stands in the user's stack.

It asks the same of the same pair in several rounds, and of nodes that another round fuses. What
counts is the last word on two nodes that are both left when it generates code.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from compilescope.base.processes.interruptions import let_through
from compilescope.instrument.torchapi.matmul_precision import matmul_precision
from compilescope.instrument.torchapi.sinks import Sink
from compilescope.instrument.torchapi.times.region_times import entered_code, existing_regions
from compilescope.instrument.torchapi.times.roof import CPU, known_roof
from compilescope.instrument.torchapi.times.step_kinds import CallKind, CallKinds, CountedRegion
from compilescope.knowledge.profiles.calls import UnfusedPair, UserLine
from compilescope.knowledge.profiles.trace import STEP, compact, read_stored
from compilescope.record.bodies import StepsProfiled

_QUIET = 3
"""Steps without a compilation after which a program counts as settled. Chosen: Inductor's
autotuning and the recording of CUDA graphs take the first two calls."""
_PATIENCE = 200
"""Calls of all regions. Chosen: four steps of a model whose fifty blocks are compiled apart."""
_OWN_PROFILER = "the program uses torch's profiler itself, and there can be one at a time"
_ATTEMPTS = 4
"""Measurements that a compilation may interrupt. Chosen, not measured: after the
last of them the process has no profile."""


class StepProfiler:
    """One process's profile: made once, written once."""

    def __init__(self, sink: Sink, steps: int) -> None:
        self._sink = sink
        self._steps = steps
        self._entries: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._regions: list[CountedRegion] = []
        self._kinds = CallKinds()
        self._anchor: CallKind | None = None
        self._usual: set[CallKind] = set()
        """What else is called in a step."""
        self._other = False
        """Something else was, since the step began."""
        self._phase: Callable[[], None] | None = self._wait
        self._attempts = 0
        self._depth = threading.local()
        self._thread: int | None = None
        self._pid = os.getpid()
        self._marks: list[Any] = []
        self._profiler: Any = None
        self._starting = False
        self._mark: Any = None
        self._done = 0
        self._step_ns: list[int] = []
        self.fusions = FusionNotes()
        self._told: StepsProfiled | None = None
        """Recorded; not yet emitted, for its places are being sought."""

    def note_compilation(self) -> None:
        """The program has not settled yet."""
        if self._told is not None:
            self._tell_without_places()
            return
        self._anchor = None
        self._kinds.forget()
        if self._phase not in (None, self._wait):
            self._attempts += 1
            self._drop()
            self._phase = self._wait
            if self._attempts >= _ATTEMPTS:
                self._give_up(f"something compiled in each of {_ATTEMPTS} attempts to measure")
        for region in self._regions:
            region.calls = 0

    def give_way(self) -> None:
        """The program starts torch's profiler, of which there can be one: it gets its own trace."""
        if self._profiler is None or self._starting:
            return
        if self._told is not None:
            self._tell_without_places()
        else:
            self._give_up(_OWN_PROFILER)

    def _give_up(self, reason: str) -> None:
        self._end()
        self._drop()
        self._sink.emit(StepsProfiled(reason=reason))

    def watch_region(self, context: Any) -> None:
        """`context` is the object behind one `torch.compile`."""
        if self._phase is None or context in self._entries:
            return
        if not callable(getattr(context, "callback", None)):
            return
        region = CountedRegion()
        self._regions.append(region)
        enter = self._entries[context] = self._entry(region)
        context.enter_exit_hooks.append(enter)

    def watch_existing_regions(self) -> None:
        for context in existing_regions():
            self.watch_region(context)

    def _entry(self, region: CountedRegion) -> Callable[[], Callable[[], None]]:
        depth = self._depth

        def leave() -> None:
            depth.now = max(getattr(depth, "now", 1) - 1, 0)

        def enter() -> Callable[[], None]:
            now = getattr(depth, "now", 0)
            depth.now = now + 1
            if not now and self._phase is not None:
                self._called(region)
            return leave

        return enter

    def _called(self, region: CountedRegion) -> None:
        if os.getpid() != self._pid:
            self._end()  # A forked child; its parent tells.
            return
        region.calls += 1
        if region.ref is None:
            region.ref = entered_code()
        kind = self._kinds.note(region, _grad_enabled())
        if self._anchor is not None and kind is not self._anchor:
            if kind not in self._usual:
                self._meet_other(self._anchor)
            return
        thread = threading.get_ident()
        if self._thread not in (None, thread) or _is_capturing():
            return
        try:
            assert self._phase is not None
            self._phase()
        except Exception as error:
            let_through(error)
            self._end()
            self._sink.fault("step-profiler", error)

    def _wait(self) -> None:
        """Until each region that is called has had its quiet calls. One that is called once and
        never again is not waited for long."""
        called = [region for region in self._regions if region.calls]
        settled = [region for region in called if region.calls > _QUIET]
        patient = sum(region.calls for region in called) < _PATIENCE
        anchor = self._kinds.step(_QUIET)
        if anchor is None or (patient and len(settled) < len(called)):
            return
        self._anchor, self._usual = anchor, self._kinds.between(anchor)
        self._thread = threading.get_ident()
        self._begin_timing()

    def _meet_other(self, anchor: CallKind) -> None:
        """Something else is called than in the steps so far: their loop pauses, or is over."""
        self._other = True
        if self._told is None and anchor.is_over(time.perf_counter_ns()):
            self._drop()
            self._anchor, self._phase = None, self._wait
            self._kinds.forget()

    def _begin_timing(self) -> None:
        self._phase = self._time
        self._other = False
        self._marks = [_moment()]

    def _is_whole(self) -> bool:
        """Was the step that ends now one like the others? After some attempts any is."""
        other, self._other = self._other, False
        return not other or self._attempts >= _ATTEMPTS

    def _time(self) -> None:
        if not self._is_whole():
            self._attempts += 1
            self._begin_timing()
            return
        self._marks.append(_moment())
        if len(self._marks) <= self._steps:
            return
        self._step_ns = _between(self._marks)
        self._phase = self._record
        self._start()

    def _start(self) -> None:
        import torch

        if getattr(torch.autograd.profiler, "_is_profiler_enabled", False):
            self._give_up(_OWN_PROFILER)
            return
        self._profiler = torch.profiler.profile(activities=_activities())
        self._start_profiler()
        self._done = 0
        self._begin_step()

    def _start_profiler(self) -> None:
        self._starting = True
        try:
            self._profiler.start()
        finally:
            self._starting = False

    def _begin_step(self) -> None:
        import torch

        self._mark = torch.profiler.record_function(f"{STEP}#{self._done}")
        self._mark.__enter__()

    def _record(self) -> None:
        if not self._is_whole():
            self._attempts += 1
            self._drop()
            self._begin_timing()
            return
        self._end_step()
        self._done += 1
        # The first one has the profiler's own start in it.
        if self._done <= self._steps:
            self._begin_step()
            return
        self._phase = self._locate
        self._keep()
        self._begin_locating()

    def _begin_locating(self) -> None:
        self._profiler = _with_stacks()
        self._start_profiler()
        self._begin_step()

    def _locate(self) -> None:
        """The step with stacks has ended."""
        if not self._is_whole():
            self._attempts += 1
            self._drop()
            self._begin_locating()
            return
        from compilescope.instrument.torchapi.times.step_places import read_step_places

        self._end()
        self._end_step()
        profiler, self._profiler = self._profiler, None
        told, self._told = self._told, None
        assert told is not None
        try:
            profiler.stop()
            text = msgspec.json.encode(read_step_places(profiler)).decode()
            told = msgspec.structs.replace(told, places=self._sink.artifact(text, "places"))
        finally:
            _release(profiler)
            self._sink.emit(told)

    def _tell_without_places(self) -> None:
        """The step with stacks cannot be taken."""
        told, self._told = self._told, None
        self._end()
        self._drop()
        if told is not None:
            self._sink.emit(told)

    def _end(self) -> None:
        """Nothing more is to be recorded: the calls from now on cost what they cost without us."""
        self._phase = None
        for context, enter in list(self._entries.items()):
            # Another list: a call may be going through this one.
            others = [each for each in context.enter_exit_hooks if each is not enter]
            context.enter_exit_hooks = others

    def _end_step(self) -> None:
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _drop(self) -> None:
        """What was recorded so far is no steady state."""
        with contextlib.suppress(Exception):
            self._end_step()
            if self._profiler is not None:
                self._profiler.stop()
                _release(self._profiler)
        self._profiler = None

    def _keep(self) -> None:
        import torch

        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        self._profiler.stop()
        with tempfile.TemporaryDirectory(prefix="compilescope-") as folder:
            file = Path(folder) / "trace.json"
            self._profiler.export_chrome_trace(str(file))
            text = compact(file, first=1)
        _release(self._profiler)
        self._profiler = None
        assert self._anchor is not None
        # Dynamo starts CUDA wherever there is a GPU, also for a program that leaves it idle.
        name = torch.cuda.get_device_name() if read_stored(text).device else ""
        roof = known_roof(name or CPU)
        unfused = msgspec.json.encode(self.fusions.pairs()).decode()
        self._told = StepsProfiled(
            region=self._anchor.region.ref,
            steps=self._steps,
            step_ns=tuple(self._step_ns),
            trace=self._sink.artifact(text, "profile"),
            device=name,
            roof=msgspec.json.encode(roof).decode() if roof is not None else "",
            matmul_precision=matmul_precision(),
            unfused=self._sink.artifact(unfused, "unfused"),
        )

    def close(self) -> None:
        """Say why there is no profile, if there is none, and let the regions alone."""
        phase = self._phase
        self._end()
        if phase is None or os.getpid() != self._pid or not self._regions:
            return
        if self._told is not None:
            self._tell_without_places()
            return
        calls = max((region.calls for region in self._regions), default=0)
        # To settle, to time each step, and to record each and the one in which the profiler starts.
        wanted = _QUIET + 1 + self._steps + self._steps + 1
        reason = f"the program ended after {calls} calls of a compiled region without a compilation"
        self._give_up(f"{reason}; {wanted} are needed")


def _release(profiler: Any) -> None:
    """Free what it recorded, now. A profiler refers to itself: left to the garbage collector it may
    live until the process ends, which its trace then crashes (torch 2.13)."""
    profiler.profiler.kineto_results = None


def _activities() -> list[Any]:
    import torch

    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_initialized():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    return activities


def _with_stacks() -> Any:
    """What the host calls, from where, and with what: the device is not asked."""
    import torch

    cpu = [torch.profiler.ProfilerActivity.CPU]
    return torch.profiler.profile(activities=cpu, with_stack=True, record_shapes=True)


def _grad_enabled() -> bool:
    import torch

    return bool(torch.is_grad_enabled())


def _is_capturing() -> bool:
    """Into a CUDA graph of the program's own, in which nothing of ours must be."""
    import torch

    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def _moment() -> Any:
    """Now: on the device, where there is one, because the host runs ahead of it."""
    import torch  # As everywhere here: hooks are put on before the program imports it.

    if not torch.cuda.is_initialized():
        return time.perf_counter_ns()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _between(marks: list[Any]) -> list[int]:
    pairs = itertools.pairwise(marks)
    if isinstance(marks[0], int):
        return [after - before for before, after in pairs]
    marks[-1].synchronize()
    return [round(before.elapsed_time(after) * 1e6) for before, after in pairs]


_MOST_OPERATORS = 4
"""Named of a kernel. Chosen: more say no more."""


class FusionNotes:
    """Of all graphs of a process."""

    def __init__(self) -> None:
        self._refused: dict[tuple[str, str], str] = {}
        self._pairs: Counter[UnfusedPair] = Counter()

    def refuse(self, first: str, second: str, reason: str) -> None:
        """By the scheduler's names of the nodes."""
        self._refused[first, second] = reason

    def settle(self, nodes: list[Any]) -> None:
        """These are the kernels of a graph."""
        named = {node.get_name(): node for node in nodes}
        for (first, second), reason in self._refused.items():
            if first in named and second in named:
                one, other = named[first], named[second]
                found = UnfusedPair(_operators(one), _operators(other), reason, _line(one))
                self._pairs[found] += 1
        self._refused.clear()

    def pairs(self) -> list[UnfusedPair]:
        """The most frequent first."""
        return [
            UnfusedPair(pair.first, pair.second, pair.reason, pair.at, count)
            for pair, count in self._pairs.most_common()
        ]


def _origins(node: Any) -> list[Any]:
    """The nodes of FX that it computes."""
    inner = [each.node for each in node.get_nodes() if each.node is not None]
    return [origin for each in inner for origin in each.origins]


def _operators(node: Any) -> str:
    """`sum, relu`: from `aten.sum.dim_IntList`."""
    names = dict.fromkeys(
        str(origin.target).removeprefix("aten.").split(".")[0]
        for origin in sorted(_origins(node), key=lambda each: str(each.name))
        if origin.op == "call_function"
    )
    more = ", ..." if len(names) > _MOST_OPERATORS else ""
    return ", ".join(list(names)[:_MOST_OPERATORS]) + more or str(node.get_name())


def _line(node: Any) -> UserLine | None:
    from compilescope.instrument.torchapi.graphs.fx import frame_of_trace  # It imports torch.

    frames = (frame_of_trace(origin.meta.get("stack_trace") or "") for origin in _origins(node))
    found = [UserLine(each.file, each.line, each.function) for each in frames if each is not None]
    return min(found, key=lambda at: (at.file, at.line), default=None)
