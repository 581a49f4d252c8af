"""How often do the 95 % intervals of `compilescope bench` hold the truth?

    python benchmarks/bench_intervals.py [--trials 400]
    python benchmarks/bench_intervals.py --real [--times 1] [--equal 5] [--runs 10]

Without --real: samples whose true median is known, from one process, and from several that have
luck of their own. With --real: one model on several backends that are the same, on this machine;
the ratio of two equal things is 1, and an interval that excludes it is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from compilescope.knowledge.analysis.intervals import ratio, summarize

Draw = Callable[[np.random.Generator, int], np.ndarray]


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return 100 + 5 * rng.standard_normal(n)


def lognormal(rng: np.random.Generator, n: int) -> np.ndarray:
    return 100 * np.exp(0.25 * rng.standard_normal(n))


def contaminated(rng: np.random.Generator, n: int) -> np.ndarray:
    """One run in ten waited for something else."""
    late = (rng.random(n) < 0.1) * rng.exponential(60, n)
    return 100 + 2 * rng.standard_normal(n) + late


KINDS: tuple[Draw, ...] = (normal, lognormal, contaminated)
SIZES = (3, 5, 10, 30)
LUCK = (0.0, 0.02, 0.1)
"""The standard deviation of a process's own factor."""
HEAD = "| samples | runs | processes | their luck | median | ratio, paired | ratio, unpaired |"


def main() -> None:
    asked = _arguments()
    if asked.real:
        _real(asked.times, asked.runs, asked.equal)
        return
    print(HEAD)
    print("|---|---|---|---|---|---|---|")
    for draw in KINDS:
        truth = float(np.median(draw(np.random.default_rng(1), 4_000_000)))
        for size in SIZES:
            _row(draw, truth, size, 1, 0.0, asked.trials)
    truth = 100.0
    for processes in (2, 3, 5):
        for luck in LUCK:
            _row(normal, truth, 10, processes, luck, asked.trials)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--times", type=int, default=1, help="with --real: benchmarks")
    parser.add_argument("--equal", type=int, default=5, help="with --real: equal backends")
    parser.add_argument("--runs", type=int, default=10, help="with --real: runs in each process")
    return parser.parse_args()


def _row(draw: Draw, truth: float, size: int, processes: int, luck: float, trials: int) -> None:
    rng = np.random.default_rng(size * 1000 + processes)
    held = np.zeros(3)
    for _ in range(trials):
        one, two = (_rows(rng, draw, size, processes, luck) for _ in range(2))
        found = summarize(one)
        assert found is not None and found.ci is not None
        held[0] += found.ci[0] <= truth <= found.ci[1]
        for place, paired in ((1, True), (2, False)):
            quotient = ratio(one, two, paired=paired)
            assert quotient is not None and quotient.low is not None
            assert quotient.high is not None
            held[place] += quotient.low <= 1 <= quotient.high
    shares = " | ".join(f"{share:.1%}" for share in held / trials)
    print(f"| {draw.__name__} | {size} | {processes} | {luck:.0%} | {shares} |", flush=True)


def _rows(
    rng: np.random.Generator, draw: Draw, size: int, processes: int, luck: float
) -> list[list[float]]:
    factors = np.exp(luck * rng.standard_normal(processes))
    return [list(factor * draw(rng, size)) for factor in factors]


MODEL = """
import torch

def build():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(512, 512), torch.nn.ReLU()] * 4
    return torch.nn.Sequential(*layers), (torch.randn(256, 512),)
"""
BACKEND = """
def {name}(graph, inputs):
    return graph.forward
"""


def _real(times: int, runs: int, equal: int) -> None:
    """All backends run the captured graph as it is: equal things, in processes of their own."""
    wrong = pairs = 0
    for _ in range(times):
        rows = _measured([f"equal{number}" for number in range(equal)], runs)
        for one, two in itertools.combinations(rows, 2):
            found = ratio(one["runs_ms"], two["runs_ms"], paired=True)
            assert found is not None and found.low is not None and found.high is not None
            excluded = not found.low <= 1 <= found.high
            wrong += excluded
            pairs += 1
            mark = "  excludes 1" if excluded else ""
            print(f"{found.value:.3f}  {found.low:.3f} to {found.high:.3f}{mark}", flush=True)
    print(f"{wrong} of {pairs} intervals exclude 1")


def _measured(names: list[str], runs: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "equal.py")
        file.write_text(MODEL + "".join(BACKEND.format(name=name) for name in names))
        command = [sys.executable, "-m", "compilescope", "bench", "--model", f"{file}:build"]
        for name in names:
            command += ["--backend", f"{file}:{name}"]
        command += ["--runs", str(runs), "--no-examine", "--json", "--dir", folder]
        ended = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    rows: list[dict[str, Any]] = json.loads(ended.stdout)["results"]
    return [row for row in rows if row["backend"] != "eager"]


if __name__ == "__main__":
    main()
