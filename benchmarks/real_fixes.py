"""What does `compilescope fix` win on programs people have? Runs it on each of `real_programs/`.

    python benchmarks/real_fixes.py [--out FOLDER] [--jobs 1] [--budget SECONDS] [--read] [name ...]

Searches each program whose expectation is a loss, with `fix --json --no-time`, and prints a table:
how long a run takes, when the first verified fix was printed, how long and how much CPU time of the
process tree the search took, and what is lost before and after. Keeps each answer, and what was
printed when, in the folder; with --read the folder is read again and nothing is run. Programs whose
packages are not installed are left out, and said to be. Exit status: 1 if a search could not run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from real_programs import Expectation, expectations, missing_packages
from timed_command import own_environment, run_timed


def main() -> int:
    asked = _parse()
    with tempfile.TemporaryDirectory() as scratch:
        out = asked.out or Path(scratch)
        out.mkdir(parents=True, exist_ok=True)
        programs = {
            file: expected
            for file, expected in expectations(asked.names).items()
            if expected.verdict == "loss" or file.stem in asked.names
        }
        left_out = [file.stem for file, each in programs.items() if missing_packages(each)]
        programs = {f: each for f, each in programs.items() if not missing_packages(each)}
        if not asked.read:
            with ThreadPoolExecutor(asked.jobs) as pool:
                done = [pool.submit(search, f, e, out, asked.budget) for f, e in programs.items()]
                for each in done:
                    each.result()
        answers = [read(out, file) for file in programs]
    _print(answers)
    if left_out:
        print(f"Left out, their packages are not installed: {', '.join(left_out)}")
    return 1 if any("verdict" not in each["answer"] for each in answers) else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, help="folder for answers")
    parser.add_argument("--jobs", type=int, default=1, help="searches at a time")
    parser.add_argument("--budget", help="of each search")
    parser.add_argument("--read", action="store_true", help="read the folder; run nothing")
    parser.add_argument("names", nargs="*")
    return parser.parse_args()


def search(file: Path, expected: Expectation, out: Path, budget: str | None) -> None:
    """Writes NAME.json: the answer, and each printed line with the CPU time at which it came."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "compilescope", "fix", "--json", "--no-time"]
        command += ["--dir", f"{scratch}/runs"]
        command += ["--budget", budget] if budget else []
        command += ["--torchrun"] if expected.launcher == "torchrun" else []
        command += [*expected.options, *expected.command]
        done = run_timed(command, file.parent, own_environment(Path(scratch)))
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            answer = {"failed": done.stdout[-2000:]}
        kept = {
            "name": file.stem,
            "status": done.status,
            "wall": done.wall,
            "cpu": done.cpu,
            "lines": [asdict(each) for each in done.lines],
            "answer": answer,
        }
    (out / f"{file.stem}.json").write_text(json.dumps(kept, indent=1))
    print(f"{file.stem}: {answer.get('verdict', 'failed')}, {kept['wall']:.0f} s", flush=True)


def read(out: Path, file: Path) -> dict[str, Any]:
    kept = out / f"{file.stem}.json"
    if not kept.exists():
        return {"name": file.stem, "answer": {}, "lines": [], "wall": 0.0, "cpu": 0.0}
    found: dict[str, Any] = json.loads(kept.read_text())
    return found


def _print(answers: list[dict[str, Any]]) -> None:
    print(f"{'program':28} {'run':>5} {'first':>6} {'all':>6} {'CPU':>6}  lost -> left")
    won = 0
    for each in answers:
        answer = each["answer"]
        if "verdict" not in answer:
            print(f"{each['name']:28} no answer")
            continue
        lines = [line for line in each["lines"] if "ran the program" in line["line"]]
        run = lines[0]["wall"] if lines else 0.0
        first = next((line["wall"] for line in each["lines"] if ": verified" in line["line"]), None)
        before, after = answer["before"], answer["after"]
        shown = f"{_losses(before)} -> {_losses(after)}"
        verified = answer["verdict"] == "verified"
        won += verified
        told = f"{first:6.0f}" if first is not None else "     -"
        fixes = ", ".join(fix["fix"] for fix in answer["fixes"] if fix["kept"])
        print(
            f"{each['name']:28} {run:5.0f} {told} {each['wall']:6.0f} {each['cpu']:6.0f}"
            f"  {shown}  {fixes}"
        )
    print(f"verified: {won} of {len(answers)}")


def _losses(counted: dict[str, int]) -> str:
    return "/".join(str(counted[key]) for key in ("breaks", "recompiles", "eager", "failures"))


if __name__ == "__main__":
    sys.exit(main())
