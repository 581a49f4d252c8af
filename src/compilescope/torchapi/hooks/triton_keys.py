"""The key with which Triton asks its cache for a kernel."""

from __future__ import annotations

from compilescope.torchapi.hook import Hook
from compilescope.torchapi.inductor.triton_looks import LOSES, MODULE, begin_look

HOOK = Hook(
    id="triton-keys",
    module=MODULE,
    target="get_cache_key",
    loses=LOSES,
    after=begin_look,
)
