"""Is what was planted in a program named first? Runs each of `planted/`, and prints a table.

    python benchmarks/planted_slowness.py [name ...]

Programs that need a GPU are left out where there is none.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

PROGRAMS = Path(__file__).parent / "planted"
_LIMIT_S = 300
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


def profile(program: Planted) -> dict[str, Any]:
    """Its profile, as `run --profile --json` has it."""
    with tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, "-m", "compilescope", "run", "--profile", "--json"]
        try:
            done = subprocess.run(
                [*command, "--dir", runs, str(program.file)],
                capture_output=True,
                text=True,
                timeout=_LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            return {"reason": f"not done in {_LIMIT_S} s", "causes": []}
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
    import torch

    wanted = set(sys.argv[1:])
    named = tried = 0
    for program in planted_programs():
        if wanted and program.file.stem not in wanted:
            continue
        if program.needs_cuda and not torch.cuda.is_available():
            continue
        told = profile(program)
        tried += 1
        good = names_it(program, told)
        named += good
        found = ", ".join(
            f"{c['cause']} {c['share']:.0%}" + (f" line {c['line']}" if c["line"] else "")
            for c in told["causes"][:4]
        )
        where = "/".join(map(str, program.lines)) or "-"
        mark = "named " if good else "MISSED"
        step = f"{told['step_ms']:.2f} ms" if told.get("step_ms") else told.get("reason", "")
        title = f"{mark} {program.file.stem:18} {program.cause:10} line {where:6} {step:>10}"
        print(f"{title}  {found}", flush=True)
    print(f"{named} of {tried} named first")
    return 0 if named == tried else 1


if __name__ == "__main__":
    sys.exit(main())
