"""Is what was planted in a program named first? Runs each of `planted/`, and prints a table.

    python benchmarks/planted_slowness.py [--out FOLDER] [--limit SECONDS] [name ...]

Programs that need a GPU are left out where there is none. What each program's profile says is
written to the folder at once: `NAME.json`, `table.txt`, and in `runs/` the run of each one whose
cause was missed, for `compilescope show`.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

PROGRAMS = Path(__file__).parent / "planted"
_LIMIT_S = 300.0
"""Chosen: the slowest takes a tenth of it on a machine that is not busy."""


class Planted(NamedTuple):
    """What a program says of itself."""

    file: Path
    cause: str
    lines: tuple[int, ...]
    needs_cuda: bool


def planted_programs() -> list[Planted]:
    return [p for file in sorted(PROGRAMS.glob("*.py")) if (p := read_planted(file)) is not None]


def read_planted(file: Path) -> Planted | None:
    text = file.read_text()
    cause = re.search(r"^#: cause (\w+)$", text, re.MULTILINE)
    if cause is None:
        return None
    marked = (n for n, line in enumerate(text.splitlines(), 1) if line.endswith("#: here"))
    return Planted(file, cause[1], tuple(marked), "#: needs cuda" in text)


def profile(program: Planted, runs: Path, limit_s: float = _LIMIT_S) -> dict[str, Any]:
    """Its profile, as `run --profile --json` has it."""
    command = [sys.executable, "-m", "compilescope", "run", "--profile", "--json"]
    try:
        done = subprocess.run(
            [*command, "--dir", str(runs), str(program.file)],
            capture_output=True,
            text=True,
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        return {"reason": f"not done in {limit_s:g} s", "causes": []}
    try:
        return dict(json.loads(done.stdout.splitlines()[-1])["profiles"][0])
    except (IndexError, KeyError, ValueError):
        return {"reason": f"no profile: {done.stderr[-300:]}", "causes": []}


def names_it(program: Planted, told: dict[str, Any]) -> bool:
    """The first cause is the planted one, at one of its lines where it has some."""
    first = next(iter(told["causes"]), None)
    if first is None or first["cause"] != program.cause:
        return False
    return not program.lines or first["line"] in program.lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", help="the folder for the results")
    parser.add_argument("--limit", type=float, default=_LIMIT_S, help="seconds for each program")
    asked = parser.parse_args()
    programs = _chosen(asked.names)
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(asked.out or scratch)
        out.mkdir(parents=True, exist_ok=True)
        lines: list[str] = []
        named = 0
        for program in programs:
            good, line = _tried(program, out, asked.limit)
            named += good
            lines.append(line)
            print(line, flush=True)
            total = f"{named} of {len(lines)} named first, of {len(programs)} to run"
            (out / "table.txt").write_text("\n".join([*lines, total, ""]))
    print(f"{named} of {len(lines)} named first")
    return 0 if named == len(lines) else 1


def _chosen(names: list[str]) -> list[Planted]:
    import torch

    every = planted_programs()
    known = {program.file.stem for program in every}
    for name in names:
        if name not in known:
            sys.exit(f"There is no program {name} in {PROGRAMS}.")
    wanted = [program for program in every if not names or program.file.stem in names]
    return [program for program in wanted if torch.cuda.is_available() or not program.needs_cuda]


def _tried(program: Planted, out: Path, limit_s: float) -> tuple[bool, str]:
    name = program.file.stem
    runs = out / "runs" / name
    begun = time.perf_counter()
    told = profile(program, runs, limit_s)
    seconds = time.perf_counter() - begun
    good = names_it(program, told)
    result = {"program": name, "planted": program.cause, "named": good, "seconds": seconds}
    (out / f"{name}.json").write_text(json.dumps(result | {"profile": told}, indent=1))
    if good:
        shutil.rmtree(runs, ignore_errors=True)
    found = ", ".join(
        f"{c['cause']} {c['share']:.0%}" + (f" line {c['line']}" if c["line"] else "")
        for c in told["causes"][:4]
    )
    where = "/".join(map(str, program.lines)) or "-"
    step = f"{told['step_ms']:.2f} ms" if told.get("step_ms") else told.get("reason", "")
    title = f"{'named ' if good else 'MISSED'} {name:18} {program.cause:10} line {where:6}"
    return good, f"{title} {step:>10} {seconds:4.0f} s  {found}"


if __name__ == "__main__":
    sys.exit(main())
