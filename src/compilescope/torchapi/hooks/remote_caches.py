"""Remote caches that were asked for and cannot be used."""

from __future__ import annotations

import sys

from compilescope.model.cache_key import CacheAccess, remote_cache
from compilescope.torchapi.hook import Hook, HookedCall, Watch
from compilescope.torchapi.inductor.remote_looks import MODULE, write_look

_gone = object()


def _record(watch: Watch, call: HookedCall) -> None:
    if call.result is not None or call.get("local_cache_cls"):
        return
    cache = remote_cache(str(call.get("oss_cache_cls") or call.get("fb_cache_cls") or ""))
    if cache is not None:
        missing = getattr(sys.modules.get(MODULE), "redis", _gone) is None
        reason = "the package redis is not installed" if missing else "it could not be created"
        write_look(watch, CacheAccess(cache, "bypass", reason=reason))


HOOK = Hook(
    id="remote-caches",
    module=MODULE,
    target="create_cache",
    loses="remote caches that could not be used",
    after=_record,
    everywhere=True,
    logs=True,
)
