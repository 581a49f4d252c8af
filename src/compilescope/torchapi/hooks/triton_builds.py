"""Kernels that Triton compiles: its cache had none."""

from __future__ import annotations

from compilescope.torchapi.hook import Hook
from compilescope.torchapi.inductor.triton_looks import LOSES, MODULE, note_build

HOOK = Hook(
    id="triton-builds",
    module=MODULE,
    target="ASTSource.make_ir",
    loses=LOSES,
    before=note_build,
)
