"""Compiles a model and times what watches: `hook_times.py small|transformer infer|train WATCH`.

WATCH is `capture`, compilescope's hooks, or `trace`, torch's own TORCH_TRACE. Clocks run around
each watched call: the outer one while the hook runs, the inner one while torch's own function
does, and the difference is the hook's. For `trace` it is the function that all records pass
through, `trace_structured`; what is computed on the way to it is not counted, so the figure is
a lower bound.

The clock is the thread's CPU time: nothing is sampled, and other processes do not count. What the
clocks themselves cost is measured on an empty function and taken off. A garbage collection
that happens to start inside a hook is not charged to it: its cost is that of the whole heap.

The file named by BENCHMARK_OUT gets the CPU seconds of the compilation (hooks included), those of
putting the hooks on, and calls and seconds of each hook; hooks that filter by their first
argument are told apart by it.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from time import thread_time
from typing import Any

import torch

import model as subject

Clocked = Callable[..., Any]


class Clocks:
    """CPU time by label. What a timed call spends inside another timed call is not its own."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self._local = threading.local()
        self._collecting = 0.0

    def timed(self, function: Clocked, label: Callable[[tuple[Any, ...]], str] | None) -> Clocked:
        """`function` on a clock of its own; without a label its time is nobody's."""

        @functools.wraps(function)
        def timed_call(*args: Any, **kwargs: Any) -> Any:
            inner = self._inner()
            inner.append(0.0)
            start = thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                elapsed = thread_time() - start
                within = inner.pop()
                if inner:
                    inner[-1] += elapsed
                if label is not None:
                    name = label(args)
                    self.seconds[name] += elapsed - within
                    self.calls[name] += 1

        return timed_call

    @contextlib.contextmanager
    def without_garbage(self) -> Iterator[None]:
        """Within the block, garbage collections are nobody's."""
        gc.callbacks.append(self._collection)
        yield
        gc.callbacks.remove(self._collection)

    def _collection(self, phase: str, _: dict[str, int]) -> None:
        # It holds the interpreter's lock from start to stop: there is only one at a time.
        if phase == "start":
            self._collecting = thread_time()
        elif self._inner():
            self._inner()[-1] += thread_time() - self._collecting

    def _inner(self) -> list[float]:
        try:
            return self._local.inner
        except AttributeError:
            self._local.inner = []
            return self._local.inner


def clock_cost(calls: int = 20_000) -> float:
    """Seconds that a hook which does nothing would be charged for one call."""
    clocks = Clocks()
    empty = clocks.timed(clocks.timed(lambda: None, None), lambda args: "empty")
    for _ in range(calls):
        empty()
    return clocks.seconds["empty"] / calls


def time_hooks(clocks: Clocks) -> None:
    """From now on, hooks are put on with clocks around them."""
    from compilescope.instrument.torchapi import install
    from compilescope.instrument.torchapi.hook import observed

    def observed_and_timed(original: Clocked, hook: Any, watch: Any) -> Clocked:
        def label(args: tuple[Any, ...]) -> str:
            if not hook.first or not args:
                return hook.id
            return f"{hook.id}: {args[0] if args[0] in hook.first else 'passed by'}"

        return clocks.timed(observed(clocks.timed(original, None), hook, watch), label)

    vars(install)["observed"] = observed_and_timed


def time_trace(clocks: Clocks) -> None:
    """Put a clock on torch's structured trace, wherever its function is bound."""
    from torch._logging._internal import trace_structured

    timed = clocks.timed(trace_structured, lambda args: f"trace_structured: {args[0]}")
    for name, module in list(sys.modules.items()):
        if name.startswith("torch") and vars(module).get("trace_structured") is trace_structured:
            vars(module)["trace_structured"] = timed


@contextlib.contextmanager
def watching(watch: str, clocks: Clocks) -> Iterator[None]:
    if watch == "trace":
        time_trace(clocks)
        yield
        return
    import compilescope

    time_hooks(clocks)
    with tempfile.TemporaryDirectory() as folder, compilescope.capture(dir=folder):
        yield


def main() -> None:
    name, mode, watch = sys.argv[1:]
    torch.set_num_threads(1)
    subject.load_compiler()
    model, x = subject.build(name)
    cost = clock_cost()
    clocks = Clocks()
    start = thread_time()
    with watching(watch, clocks):
        installed = thread_time()
        with clocks.without_garbage():
            subject.compile_and_call(model, x, mode)
        compiled = thread_time()
    # Two clocks a hook, one of them inside what is charged; the trace has but one.
    share = cost if watch == "capture" else cost / 2
    hooks = {
        label: {"calls": calls, "seconds": max(clocks.seconds[label] - calls * share, 0.0)}
        for label, calls in clocks.calls.items()
    }
    seconds = compiled - installed - sum(clocks.calls.values()) * 2 * share
    with open(os.environ["BENCHMARK_OUT"], "w") as file:
        json.dump({"compile": seconds, "install": installed - start, "hooks": hooks}, file)


if __name__ == "__main__":
    main()
