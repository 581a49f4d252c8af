"""Room for as many compilations of one function as a comparison asks for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

_ROOM = 256
_NAMES = (
    "recompile_limit",
    "cache_size_limit",
    "accumulated_recompile_limit",
    "accumulated_cache_size_limit",
)


@contextlib.contextmanager
def roomy_caches() -> Iterator[None]:
    """Beyond its limit Dynamo would run a function eagerly, and nothing compiled be compared."""
    from torch._dynamo import config

    wanted = {name: _ROOM for name in _NAMES if hasattr(config, name)}
    # Some are names for others: setting both is setting one.
    with contextlib.ExitStack() as stack:
        for name, room in wanted.items():
            stack.enter_context(config.patch({name: max(room, getattr(config, name) or 0)}))
        yield
