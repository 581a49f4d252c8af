"""What a piece of device work is: generated code, a library's kernel, eager mode's, a copy."""

from __future__ import annotations

import re
from typing import Literal, get_args

import msgspec

from compilescope.profiles.trace import Trace, TraceSpan

DeviceWork = Literal["generated", "library", "eager", "collective", "copy"]
DEVICE_WORK: tuple[DeviceWork, ...] = get_args(DeviceWork)
"""In the order in which they claim a time in which several run: a copy beside a kernel costs
nothing."""
_LIBRARY = re.compile(
    r"cublas|cudnn|cutlass|gemm|gemv|wgmma|xmma|nvjet|sm\d\d_|splitK|flash|fmha|attention"
    r"|convolve|conv2d|winograd|cufft|cusparse|cusolver|miopen|rocblas|Cijk_|ck::",
    re.IGNORECASE,
)


def work_of(span: TraceSpan) -> DeviceWork:
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


class KernelTime(msgspec.Struct, frozen=True):
    """All calls of one kernel, a step."""

    name: str
    work: DeviceWork
    calls: float
    us: float


def kernel_times(trace: Trace) -> list[KernelTime]:
    """The most expensive first. A kernel belongs to the steps if it was asked for in them."""
    if not trace.steps:
        return []
    launches, count = trace.launches, len(trace.steps)
    start, end = trace.steps[0].start, trace.steps[-1].end
    found: dict[tuple[str, DeviceWork], list[float]] = {}
    for span in trace.device:
        launch = launches.get(span.correlation, span)
        if start <= launch.start < end:
            found.setdefault((span.name, work_of(span)), []).append(span.duration)
    times = [
        KernelTime(name, work, len(spans) / count, sum(spans) / count)
        for (name, work), spans in found.items()
    ]
    return sorted(times, key=lambda kernel: -kernel.us)
