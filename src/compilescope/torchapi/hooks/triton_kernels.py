"""Kernels that Triton has, compiled or from its cache."""

from __future__ import annotations

from compilescope.torchapi.hook import Hook
from compilescope.torchapi.inductor.triton_looks import LOSES, MODULE, end_look

HOOK = Hook(
    id="triton-kernels",
    module=MODULE,
    target="CompiledKernel.__init__",
    loses=LOSES,
    after=end_look,
)
