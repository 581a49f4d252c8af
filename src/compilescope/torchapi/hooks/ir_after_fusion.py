"""Inductor's IR after fusion; recorded only on request, as the IR before it."""

from __future__ import annotations

from compilescope.torchapi.hook import Hook
from compilescope.torchapi.hooks.ir_before_fusion import recorder

HOOK = Hook(
    id="ir-after-fusion",
    module="torch._inductor.debug",
    target="log_ir_post_fusion",
    loses="Inductor's IR after fusion",
    before=recorder("ir_post_fusion"),
    everywhere=True,
    only_with="ir",
)
