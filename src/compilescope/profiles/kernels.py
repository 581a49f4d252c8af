"""What a piece of device work is: generated code, a library's kernel, eager mode's, a copy."""

from __future__ import annotations

import re
from typing import Literal, get_args

from compilescope.profiles.trace import TraceSpan

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
