"""The time of a step, by torch.utils.benchmark; on a GPU by its own clock."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.benchmark import Timer

LEAST_S = 0.1
"""A run takes at least this long, so that neither the clock nor the loop shows in it. Chosen."""
LEAST_CUDA_S = 0.2
"""On a GPU, where a call of a few milliseconds is mostly the host's launching of kernels: one delay
of the host more or less would be a good part of a short run. Chosen."""


class CudaClock:
    """Seconds by the events of a CUDA device.

    Between two events their distance is a 32-bit float of milliseconds: read against one event at
    the start of all, a millisecond would be lost after some hours. So neighbours are added up.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._last = self._event()

    def __call__(self) -> float:
        now = self._event()
        self._seconds += self._last.elapsed_time(now) / 1000
        self._last = now
        return self._seconds

    @staticmethod
    def _event() -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        event.synchronize()
        return event


def once(step: Callable[[], Any], device: str) -> float:
    """Seconds of one call, whatever it has to compile."""
    wait_for(device)
    begun = time.perf_counter()
    step()
    wait_for(device)
    return time.perf_counter() - begun


def warm_up(step: Callable[[], Any], device: str, times: int) -> int:
    """How many calls a run is made of."""
    seconds = [once(step, device) for _ in range(times)]
    # Of the later ones: CUDA graphs are recorded in the second call.
    usual = statistics.median(seconds[len(seconds) // 2 :])
    least = LEAST_CUDA_S if is_cuda(device) else LEAST_S
    return max(1, math.ceil(least / max(usual, 1e-7)))


def timer_for(step: Callable[[], Any], device: str) -> Timer:
    own: dict[str, Any] = {"timer": CudaClock()} if is_cuda(device) else {}
    return Timer("step()", globals={"step": step}, num_threads=torch.get_num_threads(), **own)


def run_ms(timer: Timer, calls: int) -> float:
    """Milliseconds a call. Timer makes two calls before it looks at the clock, which bring back
    what the other processes drove out of the caches."""
    return float(timer.timeit(calls).mean) * 1000


def wait_for(device: str) -> None:
    if is_cuda(device):
        torch.cuda.synchronize()


def is_cuda(device: str) -> bool:
    return str(torch.device(device).type) == "cuda"
