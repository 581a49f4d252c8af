"""What capture costs a program that does one thing over and over: CPU time, side by side.

    python benchmarks/storms.py [--count 1000] [--minutes 10] [--warm 48] [--only KIND]
        [--backend eager] [--json]
    python benchmarks/storms.py --whole [--rounds 3] | --clocks

For every kind of `subjects/storm.py`, one process puts the hooks on and off again all the time,
so a busy machine is busy for both: `ratio` is the median, over pairs of neighbouring groups, of the
CPU time of a compilation with hooks to that without, with its 95 % confidence interval; `late` is
that of the last third, where there are the most cache entries. What capture costs is linear in the
number of recompiles if `late` is no larger. A kind ends after `--count` compilations or its share
of `--minutes`, and says how far it came.

With `--whole`, every kind runs plain and under `compilescope run -q`, in turns; a round starts with
the other one each time. `storm` is the CPU time of the program's own process from torch's compiler
loaded to the last call: its ratio is what the bar of 1.05 is about. `whole` is user and system time
of everything that was started, from `os.wait4`: interpreter, imports and the launcher too. Ratios
are taken within a round; the figure is their median. `size` is the run on disk, `show` the CPU time
of `compilescope show` of it. With a count of 1000 this takes hours.

With `--clocks`, hooks are clocked in a process of their own instead (see `capture_overhead.py`):
`hooks` is 1 + their time / the rest of the storm. Other processes do not disturb that figure.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from capture_overhead import _clean_environment, figure

SUBJECTS = Path(__file__).resolve().parent / "subjects"
KINDS = (
    "counter",
    "wide",
    "deep",
    "attributes",
    "lists",
    "modes",
    "shapes",
    "dicts",
    "callables",
    "mixed",
    "functions",
    "frames",
    "breaks",
    "skips",
    "graphs",
)
BAR = 1.05


@dataclass
class Sample:
    """One process: CPU seconds, and the bytes that it left."""

    whole: float
    storm: float
    size: int = 0
    show: float = 0.0


def call(words: list[str], folder: Path) -> tuple[float, dict[str, Any]]:
    """Python with `words`: all its CPU seconds, and what it wrote to BENCHMARK_OUT."""
    out, output = folder / "out.json", folder / "output.txt"
    out.unlink(missing_ok=True)
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            env={**_clean_environment(), "BENCHMARK_OUT": str(out)},
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(words)}: {output.read_text(errors='replace')[-2000:]}")
    written = json.loads(out.read_text()) if out.exists() else {}
    return usage.ru_utime + usage.ru_stime, written


def sample(kind: str, way: str, args: argparse.Namespace) -> Sample:
    with tempfile.TemporaryDirectory(prefix="storm-") as name:
        folder = Path(name)
        words = [str(SUBJECTS / "storm.py"), kind, str(args.count), args.backend]
        ours = ["-m", "compilescope"]
        if way == "capture":
            words = [*ours, "run", "-q", "--dir", str(folder / "runs"), *words]
        whole, marks = call(words, folder)
        found = Sample(whole, marks["done"] - marks["loaded"])
        if way == "capture":
            files = (folder / "runs").rglob("*")
            found.size = sum(file.stat().st_size for file in files if file.is_file())
            found.show = call([*ours, "show", "--dir", str(folder / "runs")], folder)[0]
        return found


def clocked(kind: str, args: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="storm-") as name:
        words = [str(SUBJECTS / "storm_clocks.py"), kind, str(args.count), args.backend]
        return call(words, Path(name))[1]


def paired(kind: str, args: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="storm-") as name:
        seconds = 60 * args.minutes / len(args.only or KINDS)
        words = [kind, str(args.warm), str(args.count), args.backend, str(seconds)]
        return call([str(SUBJECTS / "storm_pairs.py"), *words], Path(name))[1]


def rounds_of(kind: str, args: argparse.Namespace) -> list[dict[str, Sample]]:
    found: list[dict[str, Sample]] = []
    for turn in range(args.rounds):
        ways = ("plain", "capture") if turn % 2 == 0 else ("capture", "plain")
        print(f"{kind}: round {turn + 1} of {args.rounds}", file=sys.stderr, flush=True)
        found.append({way: sample(kind, way, args) for way in ways})
    return found


def line(kind: str, rounds: list[dict[str, Sample]]) -> str:
    storm = figure([each["capture"].storm / each["plain"].storm for each in rounds])
    whole = figure([each["capture"].whole / each["plain"].whole for each in rounds])
    plain = figure([each["plain"].storm for each in rounds])
    last = rounds[-1]["capture"]
    verdict = "PASS" if storm.value <= BAR else "over"
    return (
        f"{kind:10} {plain.value:8.1f} s  storm {storm!s:15} whole {whole!s:15} "
        f"{last.size / 1e6:7.2f} MB  show {last.show:6.2f} s  {verdict}"
    )


def clock_line(kind: str, found: dict[str, Any]) -> str:
    rest, hooks = found["rest"], found["hooks"]
    share = 1 + sum(hooks.values()) / rest
    most = sorted(hooks.items(), key=lambda item: -item[1])[:4]
    words = ", ".join(f"{name} {100 * seconds / rest:.2f}%" for name, seconds in most)
    return f"{kind:10} {rest:8.1f} s  hooks {share:.4f}  {words}"


def pair_line(kind: str, found: dict[str, Any]) -> str:
    ratios = [pair["with"] / pair["without"] for pair in found["pairs"]]
    plain = median(pair["without"] for pair in found["pairs"])
    low, high = median_interval(ratios)
    return (
        f"{kind:10} {1000 * plain:8.1f} ms  ratio {median(ratios):.3f} [{low:.3f}, {high:.3f}]  "
        f"late {median(ratios[-math.ceil(len(ratios) / 3) :]):.3f}  {len(ratios)} pairs in "
        f"{found['compilations']}  {'PASS' if median(ratios) <= BAR else 'over'}"
    )


def median_interval(values: list[float]) -> tuple[float, float]:
    """Between two of the values: whatever their distribution, the chance that half of all such
    values lie below the lower or above the upper one is 5 % at most. Of few values it is all."""
    ordered, outside, cut = sorted(values), 0.0, 0
    while 2 * (outside := outside + math.comb(len(values), cut) / 2 ** len(values)) <= 0.05:
        cut += 1
    cut = max(cut - 1, 0)
    return ordered[cut], ordered[-1 - cut]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="how often (1000)")
    parser.add_argument("--minutes", type=float, default=10, help="for all kinds together (10)")
    parser.add_argument("--rounds", type=int, default=3, help="with --whole (3)")
    parser.add_argument("--only", action="append", choices=KINDS, metavar="KIND")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--whole", action="store_true", help="each in processes of its own")
    parser.add_argument("--clocks", action="store_true", help="time in the hooks alone")
    parser.add_argument("--warm", type=int, default=48, help="compilations before the pairs (48)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    ways: Any = (paired, pair_line)
    if args.clocks or args.whole:
        ways = (clocked, clock_line) if args.clocks else (rounds_of, line)
    results: dict[str, Any] = {}
    for kind in args.only or KINDS:
        measure, words = ways
        results[kind] = measure(kind, args)
        if not args.json:
            print(words(kind, results[kind]), flush=True)
    if args.json:
        print(json.dumps(results, indent=2, default=asdict))


if __name__ == "__main__":
    main()
