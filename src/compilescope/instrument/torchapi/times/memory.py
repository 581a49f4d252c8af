"""The most memory that this process has taken so far, by the system and by torch's allocator.

Asked with each compilation, at each doubling of a region's calls and at the end: it opens no file,
and no step of the program pays for it.
"""

from __future__ import annotations

import sys
from contextlib import suppress

import torch

from compilescope.base.processes.interruptions import let_through
from compilescope.record.bodies import MemoryTaken

# By name, and now: a program may put others in their place.
_of_process = None
with suppress(ImportError):  # Windows has none.
    import resource

    _of_process, _OWN = resource.getrusage, resource.RUSAGE_SELF
_UNIT = 1 if sys.platform == "darwin" else 1024


def memory_taken() -> MemoryTaken | None:
    """None where neither is known."""
    host = _of_process(_OWN).ru_maxrss * _UNIT if _of_process is not None else None
    device = _on_devices()
    return MemoryTaken(host, device) if host or device else None


def _on_devices() -> int | None:
    """Of all CUDA devices, where the program has used one: only then may they be asked."""
    try:
        if not torch.cuda.is_initialized():
            return None
        devices = range(torch.cuda.device_count())
        return sum(int(torch.cuda.max_memory_allocated(each)) for each in devices)
    except Exception as error:
        let_through(error)
        return None  # A device that failed ends the program; it must not end our record of it.
