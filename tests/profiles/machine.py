"""A host and a device of which all is known: traces of its steps, and what a step takes.

The host does what a step lists, one after the other; the device has a queue of some length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from compilescope.knowledge.profiles.trace import STEP, Trace, TraceSpan
from profiles.traces import host, kernel

LATENCY, GAP, ASKING, SYNCING = 4.0, 1.0, 3.0, 2.0
"""From a launch to an idle device, between two kernels, a launch itself, what follows a wait."""


class Do(NamedTuple):
    """`run`: a kernel of `us`, asked for by compiled code that takes the host `host_us` first;
    `copy`: by an operator of eager mode; `wait`; `python` and `data` of `us`."""

    what: str
    us: float = 0.0
    host_us: float = 0.0


class Machine:
    """`watching`: for which the host is held up by each piece that a profiler notes."""

    def __init__(self, step: Sequence[Do], queue: int = 1024, watching: float = 0.0) -> None:
        self._step, self._queue, self._watching = step, queue, watching
        self._now = self._done = 0.0
        self._kernels: list[TraceSpan] = []
        self._host: list[TraceSpan] = []

    def step_us(self, steps: int = 60) -> float:
        """Once it is steady."""
        times = []
        for _ in range(steps):
            self._take()
            times.append(max(self._now, self._done))
        return (times[-1] - times[-1 - steps // 3]) / (steps // 3)

    def trace(self, before: int, steps: int = 5) -> Trace:
        """Of some steps, after others."""
        for _ in range(before):
            self._take()
        self._host.clear()
        begin = self._now
        marks = []
        for number in range(steps):
            start = self._now
            self._take()
            marks.append(host(f"{STEP}#{number}", start, self._now, "user_annotation"))
        device = [span for span in self._kernels if span.end >= begin]
        return Trace.of([*marks, *self._host, *device], [])

    def _take(self) -> None:
        for what, us, host_us in self._step:
            start = self._now
            if what == "run":
                self._now += host_us + self._watching
                self._launch("triton_a", us)
                self._host.append(host("## Call CompiledFxGraph x ##", start, self._now))
            elif what == "copy":
                self._now += 2 + self._watching
                self._launch("at::native::copy", us)
                self._now += 2 + self._watching
                self._host.append(host("aten::clone", start, self._now))
            elif what == "wait":
                self._now = max(self._now, self._done) + SYNCING + self._watching
                span = host("cudaDeviceSynchronize", start, self._now, "cuda_runtime", 10**6)
                self._host.append(span)
            else:
                self._now += us + self._watching
                if what == "data":
                    self._host.append(host("enumerate(DataLoader)#x", start, self._now))

    def _launch(self, name: str, us: float) -> None:
        asked, number = self._now, len(self._kernels) + 1
        if number > self._queue:
            self._now = max(self._now, self._kernels[number - 1 - self._queue].end)
        self._now += ASKING + self._watching
        begin = max(self._now - ASKING - self._watching + LATENCY, self._done + GAP)
        self._done = begin + us
        self._kernels.append(kernel(name, begin, self._done, number))
        self._host.append(host("cudaLaunchKernel", asked, self._now, "cuda_runtime", number))
