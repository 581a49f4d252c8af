"""Looks into caches on another machine (Redis, or Meta's own), and why one could not be used."""

from __future__ import annotations

import sys

from compilescope.instrument.torchapi.compilation.current import current_compile_id
from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.record.cache_key import CacheAccess, remote_cache

_MODULE = "torch._inductor.remote_cache"
_gone = object()

_MOST_LETTERS = 300
"""Of an error. Chosen."""


def _record_unusable(watch: Watch, call: HookedCall) -> None:
    """Caches that were asked for and cannot be used."""
    if call.result is not None or call.get("local_cache_cls"):
        return
    cache = remote_cache(str(call.get("oss_cache_cls") or call.get("fb_cache_cls") or ""))
    if cache is not None:
        missing = getattr(sys.modules.get(_MODULE), "redis", _gone) is None
        reason = "the package redis is not installed" if missing else "it could not be created"
        _write(watch, CacheAccess(cache, "bypass", reason=reason))


def _record_look(watch: Watch, call: HookedCall) -> None:
    looked = call.args[0]
    cache = remote_cache(type(looked).__name__)
    if cache is None:
        return
    key = str(call["key"])
    if call.result is not None:
        _write(watch, CacheAccess(cache, "hit", key=key))
    elif getattr(looked.backend, "_redis", _gone) is None:
        # Torch takes a server that it cannot reach for one that has nothing (torch 2.13).
        _write(watch, CacheAccess(cache, "bypass", key=key, reason="Redis cannot be reached"))
    else:
        _write(watch, CacheAccess(cache, "miss", key=key))


def _record_error(watch: Watch, call: HookedCall) -> None:
    """A server that is too slow, an entry that cannot be read. Called while the error is handled,
    once for the cache and once for what is behind it."""
    cache, error = remote_cache(str(call["name"])), sys.exc_info()[1]
    if cache is not None and error is not None:
        words = f"{type(error).__name__}: {error}"[:_MOST_LETTERS]
        _write(watch, CacheAccess(cache, "bypass", reason=words))


def _write(watch: Watch, body: CacheAccess) -> None:
    watch.sink.emit(body, compile_id=current_compile_id())


HOOKS = (
    Hook(
        id="remote-caches",
        module=_MODULE,
        target="create_cache",
        loses="remote caches that could not be used",
        after=_record_unusable,
        everywhere=True,
        logs=True,
    ),
    Hook(
        id="remote-cache-looks",
        module=_MODULE,
        target="RemoteCache.get",
        loses="looks into remote caches",
        after=_record_look,
    ),
    Hook(
        id="remote-cache-errors",
        module=_MODULE,
        target="_CacheStats.exception",
        loses="why a remote cache gave no answer",
        before=_record_error,
    ),
)
