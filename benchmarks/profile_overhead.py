"""Do steps cost more under `run --profile`, before and after those that are profiled?

    python benchmarks/profile_overhead.py [--rounds N]

A compiled function so small that its call is all of the step is called long after the profiled
steps. Two things are told:

- how many functions of Python and C a call calls, by Python's own count, in a process under
  `compilescope run` and one under `run --profile`. That is exact: what is still hooked shows there;
- the processor's time of a call, as a ratio with its 95 % interval. Two processes differ by more
  than what is sought (where their memory lies, which core they are on), so one process does both:
  captures with and without a profile take turns, each with a short block of calls after the
  profile, and each turn has a quotient of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from compilescope.knowledge.analysis.intervals import ratio

_MODEL = """
import sys
import time
import torch

@torch.compile(backend="eager")
def model(x):
    return x + 1

x = torch.ones(4)
for _ in range(200):
    model(x)
"""
_COUNTING = """
called = 0

def count(frame, event, argument):
    global called
    called += event in ("call", "c_call")

sys.setprofile(count)
for _ in range(100):
    model(x)
sys.setprofile(None)
print(called)
"""
_TURNS = """
import compilescope
from compilescope.record.bodies import StepsProfiled

def block(steps):
    with compilescope.capture(profile=steps) as seen:
        for _ in range(60):
            model(x)
        taken = []
        for _ in range(5):
            begun = time.thread_time_ns()
            for _ in range(200):
                model(x)
            taken.append(time.thread_time_ns() - begun)
    profiled = bool(list(seen.run.of(StepsProfiled)))
    assert profiled == bool(steps)
    return min(taken) / 200_000

block(2)
for turn in range(int(sys.argv[1])):
    order = (0, 2) if turn % 2 else (2, 0)
    taken = {steps: block(steps) for steps in order}
    print(taken[2], taken[0])
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counted = {
            " ".join(options) or "run": _said(folder, _COUNTING, "-m", "compilescope", *options)[-1]
            for options in (("run",), ("run", "--profile"))
        }
        counted["plain"] = _said(folder, _COUNTING)[-1]
        print("functions that 100 calls call:", counted)
        turns = _said(folder, _TURNS, rounds=asked.rounds)
    rows = [[float(each) for each in line.split()] for line in turns]
    profiled, others = ([list(side)] for side in zip(*rows, strict=True))
    found = ratio(profiled, others, paired=True)
    assert found is not None
    print(
        f"the processor's time of a call after the profiled ones: {found.value:.3f} "
        f"({found.low:.3f} to {found.high:.3f}) times that without a profile, in {len(rows)} turns"
    )


def _said(folder: str, program: str, *options: str, rounds: int = 0) -> list[str]:
    file = Path(folder, "small.py")
    file.write_text(_MODEL + program)
    command = [sys.executable, *options, str(file), str(rounds)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout.split("\n")[:-1]


if __name__ == "__main__":
    main()
