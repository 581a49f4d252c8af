"""How often `compilescope compare` calls a difference between two benchmark runs real.

    python benchmarks/compare_benchmarks.py [--pairs 100]

Each pair is two simulated benchmarks of eager mode and one backend: 3 processes with 10 runs each,
runs that vary by 3 %, processes with luck of their own of 2 %. Between the two, the machine changes
by a factor (both rows) and the backend by another. A verdict other than "no real change" or
"unknown" is a false alarm where the backend did not change, and a find where it did.
"""

from __future__ import annotations

import argparse
import random

from compilescope.knowledge.analysis.benchmark_changes import benchmark_changes
from compilescope.record.benchmark import Benchmark

RUN, LUCK = 0.03, 0.02
PROCESSES, RUNS = 3, 10


def measured(backend: str, ms: float, chance: random.Random) -> Benchmark:
    rows = []
    for _ in range(PROCESSES):
        middle = ms * chance.lognormvariate(0, LUCK)
        rows.append(tuple(middle * chance.lognormvariate(0, RUN) for _ in range(RUNS)))
    return Benchmark(model="m", backend=backend, runs_ms=tuple(rows))


def verdicts(machine: float, backend: float, pairs: int) -> dict[str, int]:
    chance = random.Random(f"{machine} {backend}")
    counts: dict[str, int] = {}
    for _ in range(pairs):
        before = [measured("eager", 100, chance), measured("inductor", 70, chance)]
        after = [
            measured("eager", 100 * machine, chance),
            measured("inductor", 70 * machine * backend, chance),
        ]
        change = next(c for c in benchmark_changes(before, after) if c.backend != "eager")
        counts[change.verdict] = counts.get(change.verdict, 0) + 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=100)
    pairs = parser.parse_args().pairs
    names = ("slower", "faster", "no real change", "unknown")
    print(f"{'machine':>8} {'backend':>8}", *(f"{name:>15}" for name in names))
    for machine, backend in (
        (1.0, 1.0),
        (1.2, 1.0),
        (0.8, 1.0),
        (1.0, 1.2),
        (1.2, 1.2),
        (1.2, 0.8),
    ):
        found = verdicts(machine, backend, pairs)
        shares = (f"{100 * found.get(name, 0) / pairs:13.0f} %" for name in names)
        print(f"{machine:7.2f}x {backend:7.2f}x", *shares, flush=True)


if __name__ == "__main__":
    main()
