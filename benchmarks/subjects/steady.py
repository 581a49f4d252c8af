"""What a call of a compiled function costs once everything is compiled, with hooks on and off.

Two copies of one small function: `plain` was compiled without capture, `captured` under it.
Blocks of calls alternate: `plain` with the hooks off, `plain` with the hooks on, `captured` with
the hooks on. Each round starts with another of the three, so that drift falls on all. A block's
time is the thread's CPU time over its calls; the blocks' times go to the file BENCHMARK_OUT.

`steady.py ROUNDS CALLS`
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
from collections.abc import Callable
from time import thread_time

import torch
from torch import Tensor

import compilescope

SOURCE = "def small(x, y):\n    return (x * y + 1).relu() - y.sigmoid()\n"


def compiled_copy() -> Callable[[Tensor, Tensor], Tensor]:
    """The function with a code object of its own, for Dynamo keeps its cache there."""
    scope: dict[str, Callable[[Tensor, Tensor], Tensor]] = {}
    exec(compile(SOURCE, "<small function>", "exec"), scope)
    return torch.compile(scope["small"], backend="inductor")


def microseconds(function: Callable[[Tensor, Tensor], Tensor], calls: int) -> float:
    """CPU time of one call, over a block of them."""
    x, y = torch.ones(32), torch.ones(32)
    start = thread_time()
    for _ in range(calls):
        function(x, y)
    return (thread_time() - start) / calls * 1e6


def main() -> None:
    rounds, calls = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    plain, captured = compiled_copy(), compiled_copy()
    microseconds(plain, calls)
    with compilescope.capture():
        microseconds(captured, calls)
    kinds = {
        "plain": (plain, False),
        "hooks_on": (plain, True),
        "compiled_under_capture": (captured, True),
    }
    blocks: dict[str, list[float]] = {name: [] for name in kinds}
    seen = 0
    gc.disable()
    for turn in range(rounds):
        names = list(kinds)
        for name in names[turn % 3 :] + names[: turn % 3]:
            function, hooks = kinds[name]
            with compilescope.capture() if hooks else contextlib.nullcontext() as run:
                microseconds(function, 50)
                blocks[name].append(microseconds(function, calls))
            # Start and end are two events; any more would mean that it compiled again.
            seen += len(run.events) - 2 if run is not None else 0
        gc.collect(0)
    with open(os.environ["BENCHMARK_OUT"], "w") as file:
        json.dump({"blocks": blocks, "events": seen}, file)


if __name__ == "__main__":
    main()
