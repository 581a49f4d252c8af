"""What a thread of the host does at a time: the innermost of what the profiler saw there.

The kinds are for a person who asks why the device had nothing to do.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, get_args

from compilescope.profiles.trace import Interval, TraceSpan

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


def host_work(span: TraceSpan) -> HostWork | None:
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
    work = host_work(span)
    if work is None or (work == "operator" and outer in ("wrapper", "optimizer", "data")):
        return outer
    return work


def _on_cpu(span: TraceSpan, outer: Work | None) -> Work | None:
    """A compiled graph is generated code, and the operators that it calls are a library's."""
    if span.name.startswith(("## Call CompiledFxGraph", "graph_")):
        return "generated"
    if outer in ("generated", "library"):
        return "library" if span.kind == "cpu_op" else outer
    if outer == "wrapper" and host_work(span) == "operator":
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
