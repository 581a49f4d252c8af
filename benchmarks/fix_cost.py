"""What `compilescope fix` costs: CPU time of the whole process tree.

    python benchmarks/fix_cost.py [PROGRAM]...

Runs each program by itself, with empty caches, and then `compilescope fix --json --no-time` on it,
and prints what the program takes (T), when the first fix was verified, when everything was tried,
and whether that is within the bars: 20 s + 1.5 T, and 60 s + 4 T for up to 15 causes. Without
names, four of real_programs/own. Exit status 1 where a bar is missed.

    python benchmarks/fix_cost.py --against PATH [--time] [--rounds 1] [PROGRAM]...

Holds this checkout against another one.

Runs `compilescope fix --json` on programs of tests/fixes/programs (or those that are given), with
this checkout and with the one at PATH by turns, and prints the CPU time of both, their ratio, and
whether they come to the same: the set of (fix, verdict, kept) of all attempts, and the verdict on
the whole. `--time` leaves the timing of the result on, as the command does by default. Both are
compiled to bytecode before, as an installed package is.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from timed_command import first_verified, own_environment, run_timed

HERE = Path(__file__).parent.parent
PROGRAMS = HERE / "tests" / "fixes" / "programs"
SMALL = (
    "print_in_step",
    "sum_gate",
    "cached_property_table",
    "step_counter",
    "trap_branch_aliases_argument",
)


REAL = HERE / "benchmarks" / "real_programs" / "own"
LARGE = ("gpt_train_step", "dice_segmentation", "clip_step_counter", "vit_nan_checks")
_MOST_CAUSES = 15
"""For which the second bar is meant."""


@dataclass(frozen=True)
class Cost:
    """One run of the command."""

    cpu_s: float
    wall_s: float
    came_to: object


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--against", type=Path, help="the root of a checkout")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("programs", nargs="*", type=Path)
    given = parser.parse_args()
    if given.against is None:
        programs = given.programs or [REAL / f"{name}.py" for name in LARGE]
        return max([hold_to_bars(program) for program in programs], default=0)
    programs = given.programs or [PROGRAMS / f"{name}.py" for name in SMALL]
    for checkout in (given.against, HERE):
        compileall.compile_dir(checkout / "src", quiet=1)
    ratios, agree = [], 0
    print(f"{'program':32} {'there':>16} {'here':>16} {'ratio':>6}  same")
    for program in programs:
        there: list[Cost] = []
        here: list[Cost] = []
        for _ in range(given.rounds):
            there.append(cost(given.against, program, timed=given.time))
            here.append(cost(HERE, program, timed=given.time))
        old, new = (statistics.median(each.cpu_s for each in runs) for runs in (there, here))
        same = len({repr(each.came_to) for each in (*there, *here)}) == 1
        ratios.append(new / old)
        agree += same
        shown = [f"{s:5.1f} s ({r[0].wall_s:4.0f} s)" for s, r in ((old, there), (new, here))]
        print(
            f"{program.stem:32} {shown[0]:>16} {shown[1]:>16} {new / old:6.2f}  {same}", flush=True
        )
        if not same:
            print(f"  there: {there[0].came_to}\n  here:  {here[0].came_to}", flush=True)
    print(f"CPU time: median ratio {statistics.median(ratios):.2f}, most {max(ratios):.2f}")
    print(f"the same verdicts: {agree} of {len(programs)} programs")
    return 0


def hold_to_bars(program: Path) -> int:
    """1 where a bar is missed; a program of which nothing can be fixed has no first fix."""
    words = [str(program.absolute()), *_arguments(program)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        alone = run_timed([sys.executable, *words], program.parent, own_environment(folder))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        command = [sys.executable, "-m", "compilescope", "fix", "--json", "--no-time"]
        command += ["--dir", str(folder / "runs"), *words]
        done = run_timed(command, program.parent, own_environment(folder))
    answer = json.loads(done.stdout)
    causes = len({each["fingerprint"] for each in answer["fixes"]})
    first = first_verified(done.lines)
    first_bar, all_bar = 20 + 1.5 * alone.cpu, 60 + 4 * alone.cpu
    told = f"{first.cpu:5.0f} s" if first is not None else "  none"
    late = first is not None and first.cpu > first_bar
    late = late or (causes <= _MOST_CAUSES and done.cpu > all_bar)
    print(
        f"{program.stem:24} T {alone.cpu:4.0f} s, first {told} of {first_bar:4.0f} s,"
        f" all {done.cpu:5.0f} s of {all_bar:4.0f} s, {causes} causes{': missed' if late else ''}",
        flush=True,
    )
    return int(late)


def cost(checkout: Path, program: Path, *, timed: bool) -> Cost:
    """In a folder of its own, with nothing in the caches of compiled code."""
    words = [sys.executable, "-m", "compilescope", "fix", "--json", "--limit", "120"]
    words += [] if timed else ["--no-time"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": str(checkout / "src"),
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
        }
        done = subprocess.run(
            [*words, str(program.absolute()), *_arguments(program)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    wall = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(used, wall, _came_to(done))


def _came_to(done: subprocess.CompletedProcess[bytes]) -> object:
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return done.returncode, done.stderr.decode(errors="replace")[-400:]
    fixes = {(each["fix"], each["verdict"], each["kept"]) for each in found["fixes"]}
    return done.returncode, found["verdict"], sorted(fixes)


def _arguments(program: Path) -> list[str]:
    for line in program.read_text().splitlines():
        if line.startswith("# args:"):
            return line.removeprefix("# args:").split()
    return []


if __name__ == "__main__":
    sys.exit(main())
