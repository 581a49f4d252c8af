"""What `compilescope fix` makes of models of `transformers`, built small from their configs.

    python benchmarks/fix_models.py [NAME ...] [--limit 600] [--budget 10m] [--keep FOLDER]
                                    [--script] [--jobs N] [--json]
    python benchmarks/fix_models.py [NAME ...] --survey

Each model is a program of its own in benchmarks/fix_models/, as a user would write it: a config,
random weights, torch.compile, a few calls, on a GPU where there is one. They run one after another,
or `--jobs` at a time, each in processes of its own; nothing is written beside them. `--keep` keeps
each answer as JSON, and takes the answers that are there already. `--script` also writes each
program's fixed script, which is run by itself before it counts. `--budget` bounds each search as
`fix --budget` does. `--survey` only runs each program once and lists what it loses.

Needs the extra `models`; the two losses need SciPy as well.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "fix_models"
ROOT = Path(__file__).parent.parent


def answer_for(
    name: str, limit: float, kept: Path | None, script: bool, budget: str | None
) -> dict[str, Any]:
    """The JSON that `compilescope fix` prints; `failed` says why there is none."""
    file = kept / f"{name}.json" if kept is not None else None
    if file is not None and file.is_file():
        return dict(json.loads(file.read_text()))
    began = time.monotonic()
    program = str(PROGRAMS / f"{name}.py")
    options = ["--json", "--no-time", "--limit", str(limit)]
    if budget:
        options += ["--budget", budget]
    with tempfile.TemporaryDirectory() as folder:
        if script:
            options += ["--script", "--output", str(Path(folder, f"{name}_fixed.py"))]
        done = subprocess.run(
            [sys.executable, "-m", "compilescope", "fix", *options, program],
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
    try:
        answer = dict(json.loads(done.stdout))
    except ValueError:
        words = " ".join(done.stderr.split())
        answer = {"failed": words[-400:] or f"exit status {done.returncode}"}
    answer["seconds"] = round(time.monotonic() - began)
    if file is not None and "failed" not in answer:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(answer, indent=1))
    return answer


def survey(name: str) -> dict[str, Any]:
    """One run of the program, and what its report counts."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "compilescope"]
        program = str(PROGRAMS / f"{name}.py")
        subprocess.run(
            [*command, "run", "--dir", folder, program], capture_output=True, cwd=ROOT, check=False
        )
        shown = subprocess.run(
            [*command, "show", "--json", "--dir", folder], capture_output=True, text=True, cwd=ROOT
        )
    return dict(json.loads(shown.stdout))


def line_of(name: str, answer: dict[str, Any]) -> str:
    if "failed" in answer:
        return f"{name:18} {answer['failed']}"
    verdicts = [each["verdict"] for each in answer["fixes"] if each.get("fix")]
    counted = ", ".join(
        f"{verdicts.count(word)} {word}"
        for word in ("verified", "rejected", "unverified")
        if word in verdicts
    )
    breaks = f"{answer['breaks_before']} -> {answer['breaks_after']}"
    again = f"{answer['recompiles_before']} -> {answer['recompiles_after']}"
    proof = answer.get("script_proof") or {}
    script = f"; script {proof['verdict']}" if proof else ""
    new = len(answer.get("uncovered", ()))
    uncovered = f"; {new} newly visible" if new else ""
    told = f"{counted or 'nothing tried'}{uncovered}{script}"
    return f"{name:18} {breaks:>10} {again:>12} {answer['seconds']:>6}  {told}"


def tell(answers: dict[str, dict[str, Any]]) -> None:
    print(f"{'model':18} {'breaks':>10} {'recompiles':>12} {'s':>6}  verdicts")
    for name, answer in answers.items():
        print(line_of(name, answer))
    known = [each for each in answers.values() if "failed" not in each]
    before = sum(each["breaks_before"] for each in known)
    after = sum(each["breaks_after"] for each in known)
    # What a fix uncovered still breaks the graph: it counts as left.
    gone = sum(
        max(each["breaks_before"] - each["breaks_after"], 0)
        for each in known
        if each["verdict"] == "verified"
    )
    share = f", {gone} of {before} sites gone ({gone / before:.0%})" if before else ""
    print(f"{'all':18} {f'{before} -> {after}':>10}{share}")
    for name, answer in answers.items():
        for left in answer.get("left", ()):
            print(f"left in {name}: {left['place']}: {left['why']}")


def main() -> None:
    names = sorted(path.stem for path in PROGRAMS.glob("*.py"))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one run")
    parser.add_argument("--budget", help="for one search, such as 10m")
    parser.add_argument("--keep", type=Path, help="a folder for the answers")
    parser.add_argument("--script", action="store_true", help="write and run the fixed scripts")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="searches side by side")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--survey", action="store_true", help="run each once, fix nothing")
    asked = parser.parse_args()
    unknown = sorted(set(asked.names) - set(names))
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(names)}")

    def one(name: str) -> dict[str, Any]:
        if asked.survey:
            return survey(name)
        answer = answer_for(name, asked.limit, asked.keep, asked.script, asked.budget)
        print(line_of(name, answer), file=sys.stderr, flush=True)
        return answer

    chosen = asked.names or names
    with ThreadPoolExecutor(max(1, asked.jobs)) as pool:
        answers = dict(zip(chosen, pool.map(one, chosen), strict=True))
    if asked.json or asked.survey:
        json.dump(answers, sys.stdout, indent=1)
    else:
        tell(answers)


if __name__ == "__main__":
    main()
