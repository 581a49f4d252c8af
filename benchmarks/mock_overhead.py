"""What the mock backend costs: its own CPU time over that of the compilation around it.

    python benchmarks/mock_overhead.py [--rounds N] [--device NAME] [--inductor] [--check]

A transformer of 12 layers (`subjects/model.py`) is compiled and called once, for inference and for
training, with static and with dynamic shapes, against all constraints of a device. Each sample is
a process of its own, after a function of one line has made torch load its compiler.

The clock is the thread's CPU time: around the backend's own work (making the graph portable, its
operators, asking the constraints) and around the whole first call. The figure is the first over
the rest of the second: what the backend adds to a compilation without it. A garbage collection that
happens to start inside is not charged to it. With --inductor the graph goes on to Inductor, with
its caches off; else it is run eagerly, and Dynamo's tracing is all that it is held against.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import thread_time
from typing import Any

SUBJECTS = Path(__file__).resolve().parent / "subjects"
MOST_IT_MAY_COST = 0.05
CASES = [(mode, shapes) for mode in ("infer", "train") for shapes in ("static", "dynamic")]


class Clock:
    """CPU seconds of this thread inside `measure`, garbage collections left out."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._collecting = 0.0
        self._inside = False

    def measure(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        start, self._inside = thread_time(), True
        try:
            return function(*args, **kwargs)
        finally:
            self._inside = False
            self.seconds += thread_time() - start

    def collection(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collecting = thread_time()
        elif self._inside:
            self.seconds -= thread_time() - self._collecting


def sample(mode: str, shapes: str, device: str, inductor: bool) -> dict[str, float]:
    """Compile once, here."""
    import torch

    sys.path.insert(0, str(SUBJECTS))
    import compilescope
    import model as subject

    torch.set_num_threads(1)
    subject.load_compiler()
    model, x = subject.build("transformer")
    mock, clock = compilescope.mock_backend(device=device, strict=False), Clock()
    gc.callbacks.append(clock.collection)

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        run = clock.measure(mock, module, inputs)
        if inductor:
            from torch._inductor.compile_fx import compile_fx

            return compile_fx(module, inputs)
        return run

    # A small model first: what is imported once for all compilations is nobody's cost.
    small, y = subject.build("small")
    mock(torch.fx.symbolic_trace(small), [y])
    compiled = torch.compile(model, backend=backend, dynamic=shapes == "dynamic")
    start = thread_time()
    if mode == "train":
        compiled(x).square().mean().backward()
    else:
        with torch.inference_mode():
            compiled(x)
    return {"whole": thread_time() - start, "own": clock.seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="npu-a")
    parser.add_argument("--inductor", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit 1 if it costs too much")
    parser.add_argument("--sample", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.sample:
        mode, shapes = given.sample
        print(json.dumps(sample(mode, shapes, given.device, given.inductor)))
        return
    worst = 0.0
    print(f"{'case':16} {'own ms':>8} {'rest ms':>8} {'share':>7}   (median of {given.rounds})")
    for case in CASES:
        seen = [_in_fresh_process(case, given) for _ in range(given.rounds)]
        own = statistics.median(each["own"] for each in seen)
        rest = statistics.median(each["whole"] - each["own"] for each in seen)
        share = statistics.median(each["own"] / (each["whole"] - each["own"]) for each in seen)
        worst = max(worst, share)
        print(f"{' '.join(case):16} {own * 1e3:8.1f} {rest * 1e3:8.1f} {share:7.2%}", flush=True)
    if given.check and worst > MOST_IT_MAY_COST:
        sys.exit(f"The worst is {worst:.2%}, more than {MOST_IT_MAY_COST:.0%}.")


def _in_fresh_process(case: tuple[str, str], given: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, __file__, "--sample", *case, "--device", given.device]
    command += ["--inductor"] if given.inductor else []
    off = {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, **off})
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
