"""Do steps cost more under `run --profile`, before and after those that are profiled?

    python benchmarks/profile_overhead.py [--rounds N]

A compiled function so small that its call is all of the step is called some ten thousand times:
plainly, under `compilescope run`, and under `run --profile`, by turns. The processor's time of each
call, long after the profiled steps, is held against that under `run`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from compilescope.analysis.intervals import ratio

_PROGRAM = """
import time
import torch

@torch.compile(backend="eager")
def model(x):
    return x + 1

x = torch.ones(4)
for _ in range(200):
    model(x)
for _ in range(12):
    begun = time.thread_time_ns()
    for _ in range(1000):
        model(x)
    print("us", (time.thread_time_ns() - begun) / 1e6)
"""
_WAYS = {
    "plain": [],
    "run": ["-m", "compilescope", "run"],
    "run --profile": ["-m", "compilescope", "run", "--profile"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    rows: dict[str, list[list[float]]] = {way: [] for way in _WAYS}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "small.py")
        program.write_text(_PROGRAM)
        for turn in range(asked.rounds):
            for way in sorted(_WAYS, reverse=bool(turn % 2)):
                rows[way].append(_times([sys.executable, *_WAYS[way], str(program)], folder))
    for way, base in (("run", "plain"), ("run --profile", "run")):
        found = ratio(rows[way], rows[base], paired=False)
        assert found is not None
        least = {name: min(min(row) for row in rows[name]) for name in (way, base)}
        print(
            f"{way} takes {found.value:.3f} ({found.low:.3f} to {found.high:.3f}) times as long a "
            f"call as {base}; at best {least[way]:.2f} µs instead of {least[base]:.2f} µs"
        )


def _times(command: list[str], folder: str) -> list[float]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("us ")]


if __name__ == "__main__":
    main()
