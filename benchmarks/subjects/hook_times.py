"""Compiles a model under capture and times each hook: `hook_times.py small|transformer infer|train`.

Every hook's wrapper is wrapped once more, on both sides: the outer clock runs while the watched
call runs, the inner one while torch's own function does, and the difference is ours. The clock is
the thread's CPU time, so nothing is sampled and other processes do not count. What the two
clocks themselves cost is measured on an empty function and taken off.

The file named by BENCHMARK_OUT gets the CPU seconds of the compilation (hooks included), those of
putting the hooks on, and calls and seconds of each hook; hooks that filter by their first
argument are told apart by it.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable
from time import thread_time
from typing import Any

import model as subject
import torch

Clocked = Callable[..., Any]


class Clocks:
    """Exclusive CPU time by label: what a timed call spends in another timed call is not its own."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self._local = threading.local()

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
    from compilescope.torchapi import install

    observed = install.observed

    def observed_and_timed(original: Clocked, hook: Any, watch: Any) -> Clocked:
        def label(args: tuple[Any, ...]) -> str:
            if hook.wants is None or not args:
                return hook.id
            return f"{hook.id}: {args[0] if hook.wants(args) else 'passed by'}"

        return clocks.timed(observed(clocks.timed(original, None), hook, watch), label)

    install.observed = observed_and_timed


def main() -> None:
    torch.set_num_threads(1)
    subject.load_compiler()
    model, x = subject.build(sys.argv[1])
    cost = clock_cost()
    clocks = Clocks()
    start = thread_time()
    import compilescope

    time_hooks(clocks)
    with tempfile.TemporaryDirectory() as folder:
        capture = compilescope.capture(dir=folder)
        capture.__enter__()
        installed = thread_time() - start
        start = thread_time()
        subject.compile_and_call(model, x, sys.argv[2])
        compiled = thread_time() - start
        capture.__exit__(None, None, None)
    clock = sum(clocks.calls.values()) * 2 * cost
    hooks = {
        name: {"calls": calls, "seconds": max(clocks.seconds[name] - calls * cost, 0.0)}
        for name, calls in clocks.calls.items()
    }
    with open(os.environ["BENCHMARK_OUT"], "w") as file:
        json.dump({"compile": compiled - clock, "install": installed, "hooks": hooks}, file)


if __name__ == "__main__":
    main()
