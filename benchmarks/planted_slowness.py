"""Is what was planted in a program named first? Runs each of `planted/`, and prints a table.

    python benchmarks/planted_slowness.py [--out FOLDER] [--limit SECONDS] [name ...]

Programs that need a GPU are left out where there is none. What each program's profile says is
written to the folder at once: `NAME.json`, `table.txt`, and in `runs/` the run of each one whose
cause was missed (`--keep-runs`: of all), for `compilescope show`.

Of a program with two planted causes the first one told must be that whose removal saves most. That
is measured: the program without a profiler, with both, without the one and without the other, in
turns. If nobody can say which saves more, either is right. `--together 4` gets the processes of so
many programs ready at the same time; what is measured still runs alone. `--again FOLDER` judges
what an earlier call with `--keep-runs` wrote, with the causes as they are told now, without a GPU.
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
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from planted_removal import Truth, as_json, measure, truth_of, versions

from compilescope.base.errors import ToolError
from compilescope.knowledge.analysis.step_causes import steps_json
from compilescope.record.run import read_run

PROGRAMS = Path(__file__).parent / "planted"
_LIMIT_S = 300.0
"""Chosen: the slowest takes a tenth of it on a machine that is not busy."""
_BAR = 0.95
_ADDS_UP = 0.02


class Planted(NamedTuple):
    """What a program says of itself."""

    file: Path
    causes: tuple[str, ...]
    """One, or two."""
    lines: dict[str, tuple[int, ...]]
    """Of each cause that has some."""
    needs_cuda: bool

    @property
    def is_pair(self) -> bool:
        return len(self.causes) > 1


class Result(NamedTuple):
    """Of one program."""

    program: Planted
    told: dict[str, Any]
    """Its profile."""
    seconds: float
    truth: Truth | None = None
    """Of a pair, once it is measured."""

    @property
    def is_named(self) -> bool:
        """The first cause is the right one, at one of its lines where it has some, and the parts of
        the step add up."""
        first = next(iter(self.told["causes"]), None)
        if first is None or first["cause"] not in self._right:
            return False
        lines = self.program.lines.get(first["cause"])
        return (lines is None or first["line"] in lines) and abs(self.whole - 1) <= _ADDS_UP

    @property
    def whole(self) -> float:
        return float(sum(part["share"] for part in self.told.get("parts", ())))

    @property
    def _right(self) -> tuple[str, ...]:
        if not self.program.is_pair:
            return self.program.causes
        if self.truth is None or not self.truth.savings:
            return ()
        best = tuple(saving.cause for saving in self.truth.savings)
        return best if self.truth.is_tie else best[:1]

    def line(self) -> str:
        title = f"{'named ' if self.is_named else 'MISSED'} {self.program.file.stem:24}"
        told = self.told
        step = f"{told['step_ms']:.2f} ms" if told.get("step_ms") else told.get("reason", "")
        causes = told["causes"][:4]
        found = ", ".join(f"{c['cause']} {c['share']:.0%}{_at(c['line'])}" for c in causes)
        wanted = ""
        if not self.program.is_pair:
            [cause] = self.program.causes
            lines = "/".join(map(str, self.program.lines.get(cause, ()))) or "-"
            wanted = f"{cause:10} line {lines:6}"
        return f"{title} {wanted} {step:>10} {self.seconds:4.0f} s  sum {self.whole:.0%}  {found}"

    def pair_line(self) -> str:
        """What the causes save, and what the profile says they would."""
        assert self.truth is not None
        if not self.truth.savings:
            return f"       {self.truth.reason}"
        gains = {c["cause"]: c.get("saves_ms", c["ms"]) for c in self.told["causes"]}
        saved = (
            f"{s.cause} saves {s.ms:.2f} ms [{s.low:.2f}, {s.high:.2f}], told "
            + (f"{gains[s.cause]:.2f}" if s.cause in gains else "none")
            for s in self.truth.savings
        )
        tie = "  (tie)" if self.truth.is_tie else ""
        return f"       of {self.truth.step_ms:.2f} ms: {'; '.join(saved)}{tie}"


def _at(line: int | None) -> str:
    return f" line {line}" if line else ""


def planted_programs() -> list[Planted]:
    return [p for file in sorted(PROGRAMS.glob("*.py")) if (p := read_planted(file)) is not None]


def read_planted(file: Path) -> Planted | None:
    text = file.read_text()
    causes = re.search(r"^#: causes? (\w+(?: \w+)?)$", text, re.MULTILINE)
    if causes is None:
        return None
    names = tuple(causes[1].split())
    lines: dict[str, tuple[int, ...]] = defaultdict(tuple)
    for number, line in enumerate(text.splitlines(), 1):
        marked = re.search(r"#: here(?: (\w+))?$", line)
        if marked:
            lines[marked[1] or names[0]] += (number,)
    return Planted(file, names, dict(lines), "#: needs cuda" in text)


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


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", help="the folder for the results")
    parser.add_argument("--limit", type=float, default=_LIMIT_S, help="seconds for each program")
    parser.add_argument("--keep-runs", action="store_true", help="of all programs")
    parser.add_argument("--pairs", action="store_true", help="only programs with two causes")
    parser.add_argument("--together", type=int, default=1, help="pairs made ready at a time (1)")
    parser.add_argument("--again", help="the folder of an earlier call, to be judged anew")
    asked = parser.parse_args()
    programs = _chosen(asked.names)
    if asked.pairs:
        programs = [program for program in programs if program.is_pair]
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(asked.out or scratch)
        out.mkdir(parents=True, exist_ok=True)
        if asked.again:
            results = _judged_again(programs, Path(asked.again))
        else:
            programs = _runnable(programs)
            results = _tried(programs, out, asked)
        return _tabulate(results, len(programs), out)


def _chosen(names: list[str]) -> list[Planted]:
    every = planted_programs()
    known = {program.file.stem for program in every}
    for name in names:
        if name not in known:
            sys.exit(f"There is no program {name} in {PROGRAMS}.")
    return [program for program in every if not names or program.file.stem in names]


def _runnable(programs: list[Planted]) -> list[Planted]:
    import torch

    return [p for p in programs if torch.cuda.is_available() or not p.needs_cuda]


def _tabulate(results: Iterator[Result], count: int, out: Path) -> int:
    lines: list[str] = []
    named = tried = 0
    for result in results:
        tried += 1
        named += result.is_named
        own = [result.line(), *([result.pair_line()] if result.truth else [])]
        print(*own, sep="\n", flush=True)
        lines += own
        total = f"{named} of {tried} named first, of {count} to run"
        (out / "table.txt").write_text("\n".join([*lines, total, ""]))
    print(f"{named} of {tried} named first")
    return 0 if tried and named >= _BAR * tried else 1


def _tried(programs: list[Planted], out: Path, asked: argparse.Namespace) -> Iterator[Result]:
    for program in programs:
        if not program.is_pair:
            yield _kept(_profiled(program, out, asked.limit), out, asked.keep_runs)
    pairs = [program for program in programs if program.is_pair]
    for first in range(0, len(pairs), asked.together):
        group = pairs[first : first + asked.together]
        results = []
        with versions([(p.file, p.causes) for p in group], asked.limit) as ready:
            for program in group:
                truth = measure([each for each in ready if each.file == program.file])
                result = Result(program, {"reason": "", "causes": []}, 0.0, truth)
                results.append(result)
                _write(result, out)
        for result in results:
            profiled = _profiled(result.program, out, asked.limit)
            yield _kept(profiled._replace(truth=result.truth), out, asked.keep_runs)


def _profiled(program: Planted, out: Path, limit_s: float) -> Result:
    begun = time.perf_counter()
    runs = out / "runs" / program.file.stem
    shutil.rmtree(runs, ignore_errors=True)
    told = profile(program, runs, limit_s)
    return Result(program, told, time.perf_counter() - begun)


def _kept(result: Result, out: Path, keep_run: bool) -> Result:
    _write(result, out)
    if result.is_named and not keep_run:
        shutil.rmtree(out / "runs" / result.program.file.stem, ignore_errors=True)
    return result


def _write(result: Result, out: Path) -> None:
    name = result.program.file.stem
    kept = {
        "program": name,
        "planted": " ".join(result.program.causes),
        "named": result.is_named,
        "seconds": result.seconds,
        "truth": as_json(result.truth) if result.truth else None,
        "profile": result.told,
    }
    (out / f"{name}.json").write_text(json.dumps(kept, indent=1))


def _judged_again(programs: list[Planted], earlier: Path) -> Iterator[Result]:
    for program in programs:
        name = program.file.stem
        try:
            kept = json.loads((earlier / f"{name}.json").read_text())
            [run] = (earlier / "runs" / name).glob("*/run.json")
            [told] = steps_json(read_run(run.parent))
        except (OSError, ValueError, ToolError):
            continue  # It was not run, or its run was not kept.
        truth = truth_of(kept["truth"]) if kept.get("truth") else None
        yield Result(program, told, kept["seconds"], truth)


if __name__ == "__main__":
    sys.exit(main())
