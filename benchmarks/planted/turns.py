"""The steps of a program with two planted causes: for a profile, or in windows that are timed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import torch
from gpt import ON_GPU, STEPS

_WINDOW_S = 0.3
_SETTLED = 8
"""Steps until nothing compiles anymore, and CUDA graphs are recorded."""


def planted(cause: str) -> bool:
    """Is it in this run? `WITHOUT=sync` leaves it out."""
    return cause != os.environ.get("WITHOUT")


def run(step: Callable[[], object], steps: int = STEPS) -> None:
    """`TIMED=1`: a window for each line that comes in, its milliseconds a step for an answer."""
    if "TIMED" not in os.environ:
        for _ in range(steps):
            step()
        return
    _window(step, _SETTLED)
    count = max(round(_WINDOW_S * 1e3 / _window(step, 5)), 5)
    print("ready", flush=True)
    for _ in sys.stdin:
        print("window", _window(step, count), flush=True)


def _window(step: Callable[[], object], count: int) -> float:
    _wait()
    begun = time.perf_counter()
    for _ in range(count):
        step()
    _wait()
    return (time.perf_counter() - begun) / count * 1e3


def _wait() -> None:
    if ON_GPU:
        torch.cuda.synchronize()
