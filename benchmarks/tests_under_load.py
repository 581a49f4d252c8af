"""Do the tests say the same whatever else the machine does, and in whatever order they run?

    python benchmarks/tests_under_load.py [--runs 3] [--busy 4 | --beside COMMAND] [--keep folder]
        [-- tests/cli ...]

Runs the default tests several times, each time in another random order (files, and tests within
their file), beside processes that do nothing but compute, or beside a command instead (`--beside
"make test-all"`), which is run again and again. Lists every test that failed and every test whose
verdict was not the same in all runs. With `--keep` the verdicts and the output of each run stay in
that folder, and runs that are there already are compared too: the runs need not be made in one go.
`--busy 0` is a quiet machine. What follows `--` goes to pytest. Exit status: 1 if a test failed or
changed its verdict.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped

HOME = Path(__file__).parents[1]
# It ends by itself should the one that started it be killed.
_BUSY = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""
Verdicts = dict[str, str]


def main() -> int:
    asked = _parse()
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            sys.exit(f"Cannot write into {folder}: {error.strerror}.")
        for _ in range(asked.runs):
            # Drawn anew unless asked for: another order each time is the point.
            seed = asked.seed if asked.seed is not None else random.SystemRandom().randrange(10**6)
            _run_tests(folder, seed, asked)
        return _compare({file.stem: _read(file) for file in sorted(folder.glob("*.xml"))})


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--busy", type=int, default=4, help="processes that compute beside them")
    parser.add_argument("--beside", help="a command to run beside them instead, again and again")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)) + 1)
    parser.add_argument("--seed", type=int, help="of the order; another one each run if not given")
    parser.add_argument("--keep", type=Path, help="folder for verdicts and outputs")
    parser.add_argument("words", nargs="*", help="for pytest, after --")
    return parser.parse_args()


def _run_tests(folder: Path, seed: int, asked: argparse.Namespace) -> None:
    others = "beside" if asked.beside else f"busy{asked.busy}"
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{others}-seed{seed}"
    verdicts, output = folder / f"{name}.xml", folder / f"{name}.log"
    order = ("-p", "pytest_randomly", f"--randomly-seed={seed}", "--no-loadscope-reorder")
    command = [sys.executable, "-m", "pytest", "-n", str(asked.jobs), "--dist", "loadfile", *order]
    command += ["-m", "not slow", "-q", f"--junitxml={verdicts}", *asked.words]
    begun = time.monotonic()
    beside = _again_and_again(asked.beside) if asked.beside else _busy_processes(asked.busy)
    with beside, output.open("wb") as log:
        done = subprocess.run(command, cwd=HOME, stdout=log, stderr=subprocess.STDOUT)
    # 0 and 1 are verdicts; anything else is a run that ended early, or had no tests.
    if done.returncode not in (0, 1) or not verdicts.exists():
        verdicts.unlink(missing_ok=True)
        last = output.read_text(errors="replace")[-1000:]
        sys.exit(
            f"{last}\nThe tests did not run to their end: pytest ended with {done.returncode}."
        )
    counts = Counter(_read(verdicts).values())
    told = ", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items()))
    print(f"{name}: {told}; {(time.monotonic() - begun) / 60:.1f} min", flush=True)


@contextmanager
def _busy_processes(number: int) -> Iterator[None]:
    started = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(number)]
    try:
        yield
    finally:
        for process in started:
            process.send_signal(signal.SIGKILL)
            process.wait()


@contextmanager
def _again_and_again(command: str) -> Iterator[None]:
    words = ["sh", "-c", f"while :; do {command}; done"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(words, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read(file: Path) -> Verdicts:
    """The worst verdict of each test: its teardown counts too."""
    found: Verdicts = {}
    try:
        suites = JUnitXml.fromfile(str(file))
    except SyntaxError:  # What both of its parsers raise for a file that is cut.
        sys.exit(f"{file} is not the whole record of a run: remove it.")
    for suite in suites:
        for case in suite:
            results = case.result
            if any(isinstance(each, Failure | Error) for each in results):
                verdict = "failed"
            else:
                verdict = "skipped" if any(isinstance(e, Skipped) for e in results) else "passed"
            name = f"{case.classname}::{case.name}"
            found[name] = min(verdict, found.get(name, verdict))
    return found


def _compare(runs: dict[str, Verdicts]) -> int:
    if not runs:
        sys.exit("There is no run to compare.")
    wrong = 0
    for test in sorted(set().union(*runs.values())):
        verdicts = [seen.get(test, "not run") for seen in runs.values()]
        if len(set(verdicts)) > 1:
            told = ", ".join(
                f"{verdict} in {run}" for run, verdict in zip(runs, verdicts, strict=True)
            )
            print(f"changed: {test}: {told}")
        elif verdicts[0] == "failed":
            print(f"failed: {test}")
        else:
            continue
        wrong += 1
    tests = len(set().union(*runs.values()))
    print(f"{len(runs)} runs of {tests} tests: {wrong} failed or changed their verdict")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
