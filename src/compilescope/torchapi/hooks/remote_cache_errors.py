"""Errors of remote caches: a server that is too slow, an entry that cannot be read."""

from __future__ import annotations

import sys

from compilescope.model.cache_key import CacheAccess, remote_cache
from compilescope.torchapi.hook import Hook, HookedCall, Watch
from compilescope.torchapi.inductor.remote_looks import MODULE, write_look

_MOST_LETTERS = 300
"""Of an error. Chosen."""


def _record(watch: Watch, call: HookedCall) -> None:
    """Called while the error is handled, once for the cache and once for what is behind it."""
    cache, error = remote_cache(str(call["name"])), sys.exc_info()[1]
    if cache is not None and error is not None:
        words = f"{type(error).__name__}: {error}"[:_MOST_LETTERS]
        write_look(watch, CacheAccess(cache, "bypass", reason=words))


HOOK = Hook(
    id="remote-cache-errors",
    module=MODULE,
    target="_CacheStats.exception",
    loses="why a remote cache gave no answer",
    before=_record,
)
