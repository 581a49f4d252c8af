"""Torch times the guards of every compilation, and empties the processor's caches for that.

That is up to half of what compiling a small function takes (seen in 2.13). A process whose own
figures nobody reads can do without.
"""

from __future__ import annotations

import importlib

_MODULE, _NAME = "torch._dynamo.guards", "profile_guard_manager"


def skip_guard_timing() -> bool:
    """For the rest of this process. False where this torch has no such thing."""
    module = importlib.import_module(_MODULE)
    if not callable(getattr(module, _NAME, None)):
        return False
    setattr(module, _NAME, lambda *args, **kwargs: 0.0)
    return True
