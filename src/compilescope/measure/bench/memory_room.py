"""How many backends fit into memory beside eager mode, by what eager mode took itself."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from compilescope.measure.bench.protocol import FirstCall, Spec

_COMPILING = {"inference": 2.0, "training": 1.5}
"""A process that compiles holds more than one that ran eagerly: the graphs, folded constants, the
compiler's own processes. In training eager mode's own figure holds gradients already. Chosen, not
measured: a bound."""
SHARE = 0.8
"""Of what is free. Chosen: the rest is for other programs on the machine."""
COPIES = {"inference": 6, "training": 17}
"""How often a comparison of numbers holds the weights, counted in the model's own dtype: the model,
its saved state, the float64 run; in training the gradients and stepped weights of every run too.
Chosen by that count, not measured."""
_EXAMINER_BYTES = 2 << 30
"""A process of torch, and what a compiler takes beside. Chosen, not measured."""
_EXAMINER_CORES = 2
"""Chosen: one for the model, one for the compiler."""


def fitting(called: FirstCall, mode: str) -> int:
    """At least one, or nothing would be measured at all."""
    factor = _COMPILING[mode]
    room = SHARE * free_bytes() / max(factor * called.resident_bytes, 1)
    if called.device_free_bytes is not None:
        on_device = SHARE * called.device_free_bytes / max(factor * called.device_bytes, 1)
        room = min(room, on_device)
    return max(1, int(room))


def examined_at_once(parameters: int, spec: Spec) -> int:
    """How many processes may examine a model's graphs and numbers beside one another."""
    each = _EXAMINER_BYTES + 4 * parameters * COPIES[spec.mode]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min((cores or 1) // _EXAMINER_CORES, int(SHARE * free_bytes() / each)))


def free_bytes() -> int:
    """Of this machine, or of the container that we are in."""
    free = int(psutil.virtual_memory().available)
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        most = int((group / "memory.max").read_text())
        free = min(free, most - int((group / "memory.current").read_text()))
    return max(free, 0)
