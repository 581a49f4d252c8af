"""Looks into caches on another machine (Redis, or Meta's own), written down."""

from __future__ import annotations

from compilescope.model.cache_key import CacheAccess
from compilescope.torchapi.compilation.current import current_compile_id
from compilescope.torchapi.hook import Watch

MODULE = "torch._inductor.remote_cache"


def write_look(watch: Watch, body: CacheAccess) -> None:
    watch.sink.emit(body, compile_id=current_compile_id())
