"""A storm under capture with clocks around every hook: `storm_clocks.py KIND COUNT BACKEND`.

The file named by BENCHMARK_OUT gets the CPU seconds of each hook and those of the `rest`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from time import thread_time

import hook_times
import storm
import torch

import compilescope


def main(kind: str, count: str, backend: str) -> None:
    torch.set_num_threads(1)
    storm.raise_limits()
    torch.compile(lambda x: x.sin(), backend=backend)(torch.ones(8))
    cost = hook_times.clock_cost()
    clocks = hook_times.Clocks()
    hook_times.time_hooks(clocks)
    call = storm.KINDS[kind](backend)
    with (
        tempfile.TemporaryDirectory() as folder,
        compilescope.capture(dir=folder),
        clocks.without_garbage(),
    ):
        start = thread_time()
        for number in range(int(count) + 1):
            call(number)
        spent = thread_time() - start
    hooks = {
        label: max(clocks.seconds[label] - calls * cost, 0.0)
        for label, calls in clocks.calls.items()
    }
    rest = spent - sum(clocks.calls.values()) * 2 * cost - sum(hooks.values())
    with open(os.environ["BENCHMARK_OUT"], "w") as file:
        json.dump({"rest": rest, "hooks": hooks}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
