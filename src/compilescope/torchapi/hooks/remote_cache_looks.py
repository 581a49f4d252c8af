"""Each look into a cache on another machine: what it found."""

from __future__ import annotations

from compilescope.model.cache_key import CacheAccess, remote_cache
from compilescope.torchapi.hook import Hook, HookedCall, Watch
from compilescope.torchapi.inductor.remote_looks import MODULE, write_look

_gone = object()


def _record(watch: Watch, call: HookedCall) -> None:
    looked = call.args[0]
    cache = remote_cache(type(looked).__name__)
    if cache is None:
        return
    key = str(call["key"])
    if call.result is not None:
        write_look(watch, CacheAccess(cache, "hit", key=key))
    elif getattr(looked.backend, "_redis", _gone) is None:
        # Torch takes a server that it cannot reach for one that has nothing (torch 2.13).
        write_look(watch, CacheAccess(cache, "bypass", key=key, reason="Redis cannot be reached"))
    else:
        write_look(watch, CacheAccess(cache, "miss", key=key))


HOOK = Hook(
    id="remote-cache-looks",
    module=MODULE,
    target="RemoteCache.get",
    loses="looks into remote caches",
    after=_record,
)
