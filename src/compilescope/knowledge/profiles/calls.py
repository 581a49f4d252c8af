"""What the host does in a step: the innermost of what the profiler saw on a thread at a time, the
operators that the program calls, and the lines that call them.

The steps whose time is told are recorded without stacks, which are dear; one step more is recorded
with them. The n-th call of an operator in a step is the n-th in that one.

The kinds are for a person who asks why the device had nothing to do.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, get_args

import msgspec

from compilescope.knowledge.profiles.trace import Interval, Trace, TraceSpan

Within = Literal["", "graph", "region", "optimizer", "data", "backward"]
"""`graph`: in Inductor's code; `region`: in a compiled function, by a backend without such."""
_ENGINE = "autograd::engine"
_COMPILED_BACKWARD = "CompiledFunctionBackward"


WAIT = "synchronize"
"""The name of a call that only waits for the device, in no operator."""


class UserLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the user's program."""

    file: str
    line: int
    function: str = ""
    exact: bool = True
    """Else the first line of the function in which it happens."""


class CallPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call of an operator."""

    name: str
    at: UserLine | None = None
    """Of a backward operator: where the forward one is called."""
    code: UserLine | None = None
    """In compiled code: the line of Inductor's code that calls it."""
    within: Within = ""
    dtypes: tuple[str, ...] = ()
    """Of the tensors that it and all that it calls take, each once."""
    flops: float = 0.0
    """Of products of matrices and convolutions."""
    bytes: float = 0.0
    """What these read and write at least."""


class HostLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """Time that the host spends outside of torch, called from a line."""

    at: UserLine
    us: float
    calls: str = ""
    """What takes most of it."""


class StepPlaces(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the step with stacks tells."""

    calls: list[CallPlace] = []
    """In the order of their beginning."""
    generated: list[CallPlace] = []
    """Kernels of Inductor's code that compute in float64, each name once."""
    lines: list[HostLine] = []
    """The longest first."""


def read_places(text: str | None) -> StepPlaces:
    """Empty where it is not what was stored."""
    try:
        return msgspec.json.decode(text, type=StepPlaces) if text else StepPlaces()
    except (msgspec.DecodeError, UnicodeEncodeError):
        return StepPlaces()


def operator_name(name: str) -> str:
    """Without autograd's words for "now comes"."""
    return name.removeprefix(f"{_ENGINE}::evaluate_function: ")


def is_call(name: str) -> bool:
    """An operator; else a mark around operators."""
    if is_backward(name):
        return _COMPILED_BACKWARD not in name
    if _COMPILED_BACKWARD in name:
        return False
    return _host_work(TraceSpan(name, "cpu_op", 0, 0, 0)) == "operator"


class StepCall(NamedTuple):
    """An outermost operator of a recorded step."""

    span: TraceSpan
    place: CallPlace


class Calls:
    """The outermost operators of a trace, by thread and time, and waits for the device in none."""

    def __init__(self, trace: Trace, places: StepPlaces) -> None:
        self._known: dict[str, list[CallPlace]] = defaultdict(list)
        for place in places.calls:
            self._known[place.name].append(place)
        self._lanes: dict[int | str, list[StepCall]] = defaultdict(list)
        self._starts: dict[int | str, list[float]] = {}
        counts: dict[tuple[int, str], int] = defaultdict(int)
        begins = [step.start for step in trace.steps]
        for span, within in _outermost(trace.host):
            step = bisect_right(begins, span.start)
            nth = counts[step, span.name]
            counts[step, span.name] += 1
            place = self._place(span.name, nth)
            # The trace itself knows what it lies in.
            place = msgspec.structs.replace(place, within=within)
            self._lanes[span.lane].append(StepCall(span, place))
        for lane, calls in self._lanes.items():
            self._starts[lane] = [call.span.start for call in calls]
        self._waits: dict[tuple[int | str, float], StepCall] = {}
        self._place_waits(trace.host, begins)

    def _place_waits(self, host: Iterable[TraceSpan], begins: list[float]) -> None:
        """Where a step has as many as the step with stacks, or all of these are one line's."""
        known = self._known.get(WAIT, [])
        one_line = len({place.at for place in known}) == 1
        steps: dict[int, list[TraceSpan]] = defaultdict(list)
        for span in host if known else ():
            if is_sync(span) and self.at(span.lane, span.start) is None:
                steps[bisect_right(begins, span.start)].append(span)
        for spans in steps.values():
            for nth, span in enumerate(spans):
                if one_line or len(spans) == len(known):
                    place = known[0] if one_line else known[nth]
                    self._waits[span.lane, span.start] = StepCall(span, place)

    def at(self, lane: int | str, time: float) -> StepCall | None:
        """The one that runs then, or the wait that begins then."""
        index = bisect_right(self._starts.get(lane, []), time) - 1
        call = self._lanes[lane][index] if index >= 0 else None
        if call is not None and time <= call.span.end:
            return call
        return self._waits.get((lane, time))

    def of(self, lane: int | str) -> list[StepCall]:
        return self._lanes.get(lane, [])

    def _place(self, name: str, nth: int) -> CallPlace:
        known = self._known.get(name)
        if not known:
            return CallPlace(name)
        if nth < len(known):
            return known[nth]
        # More calls than in the step with stacks: the last one's line, if all have the same.
        return known[-1] if len({place.at for place in known}) == 1 else CallPlace(name)


def _outermost(host: Iterable[TraceSpan]) -> Iterable[tuple[TraceSpan, Within]]:
    """By beginning; calls within calls are left out. With what they lie in."""
    until: dict[int | str, float] = {}
    marks: dict[int | str, list[tuple[float, Within]]] = defaultdict(list)
    for span in host:
        if span.kind not in ("cpu_op", "user_annotation"):
            continue
        around = marks[span.lane]
        while around and around[-1][0] <= span.start:
            around.pop()
        outer: Within = around[-1][1] if around else ""
        if span.kind == "user_annotation" or not is_call(span.name):
            around.append((span.end, within_mark(span.name, outer)))
        elif span.start >= until.get(span.lane, 0.0):
            until[span.lane] = span.end
            yield span, "backward" if is_backward(span.name) else outer


def within_mark(name: str, outer: Within) -> Within:
    """What lies in a mark of this name."""
    if name.startswith("## Call CompiledFxGraph"):
        return "graph"
    if name.startswith("Torch-Compiled Region"):
        return "region"
    if name.startswith("Optimizer."):
        return "optimizer"
    if name.lower().startswith(("enumerate(dataloader)", "dataloader")):
        return "data"
    return outer


def is_backward(name: str) -> bool:
    return name.startswith(_ENGINE)


# Kernels that Inductor might have fused, and why it did not, in its own words.


class UnfusedPair(msgspec.Struct, frozen=True, omit_defaults=True):
    """Two kernels of one graph that use the same tensors."""

    first: str
    """What it computes: the names of ATen's operators."""
    second: str
    reason: str
    at: UserLine | None = None
    """The user's line of the first one."""
    count: int = 1
    """How many such pairs there are."""


def read_unfused(text: str | None) -> list[UnfusedPair]:
    """Empty where it is not what was stored."""
    try:
        return msgspec.json.decode(text, type=list[UnfusedPair]) if text else []
    except (msgspec.DecodeError, UnicodeEncodeError):
        return []


DeviceWork = Literal["generated", "library", "eager", "collective", "copy"]
DEVICE_WORK: tuple[DeviceWork, ...] = get_args(DeviceWork)
"""In the order in which they claim a time in which several run: a copy beside a kernel costs
nothing."""
_LIBRARY = re.compile(
    r"cublas|cudnn|cutlass|gemm|gemv|wgmma|xmma|nvjet|sm\d\d_|splitK|flash|fmha|attention"
    r"|convolve|conv2d|winograd|cufft|cusparse|cusolver|miopen|rocblas|Cijk_|ck::",
    re.IGNORECASE,
)
HostWork = Literal[
    "python", "launch", "sync", "guards", "wrapper", "operator", "optimizer", "data", "backward"
]
"""`python`: outside of everything torch told; `wrapper`: what compiled code does around its
kernels; `operator`: operators of eager mode, on the way to their launch."""
HOST_WORK: tuple[HostWork, ...] = get_args(HostWork)
Work = HostWork | DeviceWork
_WRAPPERS = (
    "Torch-Compiled Region",
    "## Call CompiledFxGraph",
    "CompiledFunction",
    "Pregraph bytecode",
    "AOTDispatcher",
    "Postgraph bytecode",
    "triton_",
    "cpp_",
    "graph_",
    "async_compile",
)
_SYNCS = ("Synchronize", "cudaMemcpy", "hipMemcpy")


class Segment(NamedTuple):
    start: float
    end: float
    work: Work
    name: str
    """Of the innermost span; empty where there is none."""


def _host_work(span: TraceSpan) -> HostWork | None:
    """None: what it is, its surroundings tell."""
    name = span.name
    if span.kind in ("cuda_runtime", "cuda_driver"):
        return "sync" if is_sync(span) else "launch"
    if name.startswith("TorchDynamo Cache Lookup"):
        return "guards"
    if name.startswith(_WRAPPERS):
        return "wrapper"
    if name.startswith(("enumerate(DataLoader)", "Dataloader", "DataLoader")):
        return "data"
    if name.startswith(("Optimizer.step", "Optimizer.zero_grad")):
        return "optimizer"
    if name.startswith("autograd::engine"):
        return "backward"
    return "operator" if span.kind == "cpu_op" else None


def is_sync(span: TraceSpan) -> bool:
    """Does the host wait here for the device? A copy is one only if it is not asynchronous."""
    name = span.name
    return any(word in name for word in _SYNCS) and not name.endswith("Async")


class HostThread:
    """One thread's time, told gaplessly."""

    def __init__(self, spans: Iterable[TraceSpan], *, on_cpu: bool = False) -> None:
        """The spans of one thread, outer before inner. `on_cpu`: the kernels run in it too."""
        self._segments = _flattened(spans, _on_cpu if on_cpu else _work)
        self._starts = [segment.start for segment in self._segments]

    def during(self, window: Interval) -> list[Segment]:
        """What it did then, in order; times in which nothing was told are `python`."""
        start, end = window
        found: list[Segment] = []
        at = start
        index = max(0, bisect_right(self._starts, start) - 1)
        while index < len(self._segments) and self._segments[index].start < end:
            segment = self._segments[index]
            low, high = max(segment.start, start), min(segment.end, end)
            if high > low:
                if low > at:
                    found.append(Segment(at, low, "python", ""))
                found.append(Segment(low, high, segment.work, segment.name))
                at = high
            index += 1
        if at < end:
            found.append(Segment(at, end, "python", ""))
        return found


def _flattened(
    spans: Iterable[TraceSpan], work_in: Callable[[TraceSpan, Work | None], Work | None]
) -> list[Segment]:
    """Nested spans as a row of segments, each with the innermost work."""
    found: list[Segment] = []
    open_spans: list[tuple[TraceSpan, Work | None]] = []
    at = 0.0

    def tell(until: float) -> None:
        nonlocal at
        if open_spans and until > at:
            span, work = open_spans[-1]
            if work is not None:
                found.append(Segment(at, until, work, span.name))
        at = max(at, until)

    for span in spans:
        while open_spans and open_spans[-1][0].end <= span.start:
            tell(open_spans[-1][0].end)
            open_spans.pop()
        tell(span.start)
        outer = open_spans[-1][1] if open_spans else None
        open_spans.append((span, work_in(span, outer)))
        at = span.start
    while open_spans:
        tell(open_spans[-1][0].end)
        open_spans.pop()
    return found


def _work(span: TraceSpan, outer: Work | None) -> Work | None:
    """Operators within a wrapper, the optimizer or the loading of data are part of that."""
    work = _host_work(span)
    if work is None or (work == "operator" and outer in ("wrapper", "optimizer", "data")):
        return outer
    return work


def _on_cpu(span: TraceSpan, outer: Work | None) -> Work | None:
    """A compiled graph is generated code, and the operators that it calls are a library's."""
    if span.name.startswith(("## Call CompiledFxGraph", "graph_")):
        return "generated"
    if outer in ("generated", "library"):
        return "library" if span.kind == "cpu_op" else outer
    if outer == "wrapper" and _host_work(span) == "operator":
        return "operator"  # A backend without code of its own: `eager`, `aot_eager`.
    return _work(span, outer)


# What a piece of device work is: generated code, a library's kernel, eager mode's, a copy.


def device_work(span: TraceSpan) -> DeviceWork:
    if span.kind != "kernel":
        return "copy"
    name = span.name
    if name.startswith("triton_"):
        return "generated"
    if name.startswith(("ncclDevKernel", "ncclKernel", "nccl", "rccl")):
        return "collective"
    # Kernels of torch's own are named by their C++ function; the libraries' hold a telling word.
    if "at::native" in name and "flash" not in name and "fmha" not in name:
        return "eager"
    return "library" if _LIBRARY.search(name) else "eager"
