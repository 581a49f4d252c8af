"""How much faster `compilescope tune` makes programs that plain `torch.compile` already compiles.

    python benchmarks/tune.py --out results  # all, on the GPU if there is one
    python benchmarks/tune.py --out results gpt_train bert_infer # some
    python benchmarks/tune.py --out results --at-once 4 --budget 4m

Each program of `benchmarks/tune_programs` is tuned in a copy of its own. Then both
texts are run by turns as plain scripts, without compilescope, and print the time of a step
themselves: the independent measurement. `--rounds 0` leaves that out; `--table`
only prints what is in the folder.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from compilescope.analysis.intervals import ratio

PROGRAMS = Path(__file__).parent / "tune_programs"
_ALONE = threading.Lock()
"""Plain scripts are timed one at a time."""


def main() -> None:
    asked = _arguments()
    if asked.search:
        _search(asked.search, asked)
        return
    out = Path(asked.out)
    out.mkdir(parents=True, exist_ok=True)
    names = asked.programs or sorted(path.stem for path in PROGRAMS.glob("*.py"))
    unknown = [name for name in names if not (PROGRAMS / f"{name}.py").exists()]
    if unknown:
        sys.exit(f"There is no program {unknown[0]} in {PROGRAMS}.")
    if not asked.table:
        with ThreadPoolExecutor(asked.at_once) as pool:
            for line in pool.map(lambda name: _tuned(name, asked, out), names):
                print(line, flush=True)
    print(_table(out))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--out", default="tune-results", help="the folder for the JSON files")
    parser.add_argument("--budget", default="4m", help="of tune, for each program")
    parser.add_argument("--at-once", type=int, default=max(1, (os.cpu_count() or 1) // 4))
    parser.add_argument("--jobs", type=int, default=3, help="of tune: candidates at the same time")
    parser.add_argument("--rounds", type=int, default=3, help="of plain scripts; 0: none")
    parser.add_argument("--only", action="append", default=[], help="a candidate; may be repeated")
    parser.add_argument("--lower-precision", action="store_true")
    parser.add_argument("--small", action="store_true", help="small models on the CPU")
    parser.add_argument("--search", help=argparse.SUPPRESS)
    parser.add_argument("--table", action="store_true", help="run nothing")
    return parser.parse_args()


def _tuned(name: str, asked: argparse.Namespace, out: Path) -> str:
    folder = (out / name).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    for version in ("original", "tuned"):
        (folder / version).mkdir(parents=True)
        shutil.copy(PROGRAMS / f"{name}.py", folder / version / f"{name}.py")
    begun = time.perf_counter()
    own = [word for word in sys.argv[1:] if word not in asked.programs]
    command = [sys.executable, str(Path(__file__).absolute()), *own, "--search", name]
    with (folder / "log.txt").open("w") as log:
        done = subprocess.run(command, cwd=folder / "tuned", stdout=log, stderr=log)
    found = {"program": name, "status": done.returncode, "seconds": time.perf_counter() - begun}
    if done.returncode:
        lines = (folder / "log.txt").read_text().strip().splitlines()
        found["error"] = lines[-1] if lines else "no output"
    else:
        found |= json.loads((folder / "found.json").read_text())
    if found.get("outcome", {}).get("verdict") == "verified":
        words = ["--small"] if asked.small else []
        found["plain"] = _plain(name, folder, words, asked.rounds)
    (out / f"{name}.json").write_text(json.dumps(found, indent=1))
    return f"{name}: {found['seconds']:.0f} s {found.get('error', '')}"


def _search(name: str, asked: argparse.Namespace) -> None:
    """In a process of its own, in the folder of the copy, which gets the tuned text."""
    from compilescope.processes.deadline import Deadline
    from compilescope.recorder.target import Target
    from compilescope.repair.search.budget import read_budget
    from compilescope.tune.options import TuneOptions
    from compilescope.tune.search import tune

    budget_s = read_budget(asked.budget)
    wishes = TuneOptions(
        only=frozenset(asked.only),
        lower_precision=asked.lower_precision,
        budget_s=budget_s,
        deadline=Deadline(budget_s),
        jobs=asked.jobs,
        tell=lambda line: print(line, flush=True),
    )
    words = ("--small",) if asked.small else ()
    result = tune(Target("script", (f"{name}.py", *words)), wishes)
    for file, text in result.files.items():
        Path(file).write_text(text)
    found = {"outcome": result.outcome, "attempts": result.attempts}
    Path("../found.json").write_bytes(msgspec.json.encode(found))


def _plain(name: str, folder: Path, words: list[str], rounds: int) -> dict[str, list[float]]:
    """Milliseconds a step as the programs print them, by turns."""
    times: dict[str, list[float]] = {"original": [], "tuned": []}
    for _ in range(rounds):
        for version, row in times.items():
            with _ALONE:
                done = subprocess.run(
                    [sys.executable, f"{name}.py", *words],
                    cwd=folder / version,
                    capture_output=True,
                    text=True,
                )
            line = [each for each in done.stdout.splitlines() if each.startswith("step_ms ")]
            if line:
                row.append(float(line[-1].split()[1]))
    return times


def _table(out: Path) -> str:
    lines = [
        "| program | before | after | speed-up | measured again | candidates | compile | memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    values: list[float] = []
    again: list[float] = []
    for file in sorted(out.glob("*.json")):
        found = json.loads(file.read_text())
        outcome, name = found.get("outcome"), found["program"]
        if outcome is None:
            lines.append(f"| {name} | | | {found.get('error', '')[:80]} | | | | |")
            continue
        values.append(outcome.get("speedup") or 1.0)
        plain = found.get("plain", {"original": [], "tuned": []})
        second = ratio([plain["original"]], [plain["tuned"]], paired=True)
        again.append(second.value if second is not None else 1.0)
        low_high = outcome.get("speedup_ci")
        within = f" ({low_high[0]:.2f} to {low_high[1]:.2f})" if low_high else ""
        words = f"{again[-1]:.2f}x" if second is not None else ""
        if second is not None and second.low is not None:
            words += f" ({second.low:.2f} to {second.high:.2f})"
        kept = ", ".join(each["candidate"] for each in found["attempts"] if each.get("kept"))
        seconds, memory = outcome.get("compile_seconds"), outcome.get("memory_bytes")
        lines.append(
            f"| {name} | {_ms(outcome.get('before_ms'))} | {_ms(outcome.get('after_ms'))} "
            f"| {values[-1]:.2f}x{within} | {words} | {kept} "
            f"| {'' if seconds is None else f'{seconds:+.0f} s'} "
            f"| {'' if memory is None else f'{memory / 1e9:+.2f} GB'} |"
        )
    if values:
        slower = sum(value < 1 for value in again)
        lines.append(
            f"\nGeometric mean of {len(values)} programs: {_mean(values):.2f}x; measured again by "
            f"the programs themselves: {_mean(again):.2f}x; slower there: {slower}."
        )
    return "\n".join(lines)


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} ms"


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


if __name__ == "__main__":
    main()
