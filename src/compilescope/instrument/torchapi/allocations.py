"""The memory that a call needs at its peak, as torch's own allocators report it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


def peak_bytes(function: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """The most bytes in tensors at any moment of the call, beyond those that were there before.

    What the call returns counts; compiled code is seen as eager code is. On a CUDA device it is
    the device's memory, else the CPU's.
    """
    if torch.cuda.is_available() and _on_cuda(args):
        return _cuda_peak(lambda: function(*args, **kwargs))
    return _cpu_peak(lambda: function(*args, **kwargs))


def _on_cuda(args: tuple[Any, ...]) -> bool:
    return any(isinstance(value, torch.Tensor) and value.is_cuda for value in args)


def _cuda_peak(call: Callable[[], Any]) -> int:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated() - before)


def _cpu_peak(call: Callable[[], Any]) -> int:
    """The profiler notes every allocation and release: their running sum has a highest point."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    profile = torch.profiler.profile(activities=activities, profile_memory=True)
    with _silent_stderr():
        profile.start()
    try:
        kept = call()
    finally:
        with _silent_stderr():
            profile.stop()
    del kept
    noted = [
        event
        for event in profile.profiler.kineto_results.events()
        if event.name() == "[memory]" and event.device_type() == torch.profiler.DeviceType.CPU
    ]
    now = most = 0
    for event in sorted(noted, key=lambda event: event.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """The profiler writes a line when it starts and when it stops (torch 2.13), past sys.stderr."""
    sys.stderr.flush()
    own = os.dup(2)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)
