"""How much faster `compilescope tune` makes programs that plain `torch.compile` already compiles.

    python benchmarks/tune.py --out results  # all, on the GPU if there is one
    python benchmarks/tune.py --out results --programs gpt_train,bert_infer  # some
    python benchmarks/tune.py --out results --limit 300 --jobs 8
    python benchmarks/tune.py --out results --limit 480 --jobs 2 --parallel 10  # on many cores
    python benchmarks/tune.py --out results --clones folder  # programs of others as well
    python benchmarks/tune.py --out results --table  # run nothing, print what is there

Each program of `benchmarks/tune_programs` is tuned in a copy of its own. Then both texts are run as
plain scripts, without compilescope, and print the times of their steps themselves: the independent
measurement. They start at the same time and take turns with their steps (`tune_turn.py`).
`tune_programs/others` names programs of others, run as they are from clones of their repositories,
on random data that its `data.py` writes; as they do not all time their steps, both texts get a mark
at the step, and a clock that knows nothing of the search.

`--limit` holds for both together, and three quarters of it are the search's. What is known of a
program is written at once: `NAME.json`, and `table.md` of all in the folder. SIGTERM and Ctrl-C end
it with the programs that are done, and with what a search had verified. With `--parallel` searches
run at the same time, and what they found is measured again afterwards, each program alone: a search
beside others measures a busy machine.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec.toml

from compilescope.knowledge.analysis.intervals import ratio

if TYPE_CHECKING:
    from compilescope.change.tune.step_place import StepPlace

PROGRAMS = Path(__file__).parent / "tune_programs"
OTHERS = PROGRAMS / "others"
_TURN = Path(__file__).absolute().parent / "tune_turn.py"
_SEARCHING = 0.75
"""Of a program's time. Chosen: the rest is enough for both texts to run once, side by side."""
_MOST_PAIRS = 3
"""Of processes that measure again. Chosen: they differ in what a process has by chance."""
_LEAVING_S = 15.0
"""For a search to end once it is told to. Chosen: it ends its processes and writes its file."""
_LONGEST_S = 300.0
"""For a program to come to its first measured step. Chosen: one that never does ends the pair."""
_VERSIONS = ("original", "tuned")
_CHILDREN: list[subprocess.Popen[bytes]] = []
"""The searches, for who ends them."""
_KEEPING = Lock()
"""The table is made of all files."""


class Program(NamedTuple):
    """One that is tuned."""

    words: tuple[str, ...]
    """Its file and its arguments."""
    clone: Path | None = None
    """Of the repository that it is from; none of ours."""
    data: str = ""
    """The function that writes what it reads."""

    def copy_into(self, folder: Path) -> None:
        if self.clone is None:
            shutil.copy(PROGRAMS / self.words[0], folder)
            return
        shutil.copytree(
            self.clone, folder, ignore=shutil.ignore_patterns(".git"), dirs_exist_ok=True
        )
        writer = [sys.executable, str(OTHERS / "data.py"), self.data]
        subprocess.run(writer, cwd=folder, check=True)


class Stopped(Exception):
    """SIGTERM or Ctrl-C."""


class Speedup(NamedTuple):
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f}x ({self.low:.2f} to {self.high:.2f})"


def main() -> int:
    asked = _arguments()
    if asked.search:
        _search(asked.search, asked)
        return 0
    out = Path(asked.out)
    out.mkdir(parents=True, exist_ok=True)
    known = list(_programs(asked))
    names = [name for given in asked.programs for name in given.split(",") if name] or known
    for name in names:
        if name not in known:
            sys.exit(f"There is no program {name} in {PROGRAMS}.")
    stopped = False
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    # Each program runs in a folder of its own.
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(each) for each in folders if each)
    if not asked.table:
        with _ending_in_order():
            try:
                if asked.parallel > 1:
                    _tuned_together(names, asked, out)
                else:
                    for name in names:
                        begun = time.perf_counter()
                        _searched(name, asked, out)
                        _measured_again(name, asked, out, begun + asked.limit)
            except Stopped:
                stopped = True
    table, slower = _table(out)
    print(table)
    return 130 if stopped else 1 if slower else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", action="append", default=[], help="names, with commas")
    parser.add_argument("--out", default="tune-results", help="the folder for the results")
    parser.add_argument("--limit", type=float, default=170.0, help="seconds for each program")
    parser.add_argument("--jobs", type=int, help="of tune: versions that compile at the same time")
    parser.add_argument("--parallel", type=int, default=1, help="searches at the same time")
    parser.add_argument("--only", action="append", default=[], help="a candidate; may be repeated")
    parser.add_argument("--lower-precision", action="store_true")
    parser.add_argument("--small", action="store_true", help="small models on the CPU")
    parser.add_argument("--clones", help="folder with clones of others' repositories")
    parser.add_argument("--search", help=argparse.SUPPRESS)
    parser.add_argument("--table", action="store_true", help="run nothing")
    asked = parser.parse_args()
    if asked.clones and not asked.search:
        # A search is asked with the same words, from another folder.
        asked.clones = os.path.abspath(asked.clones)
        sys.argv += ["--clones", asked.clones]
    return asked


@contextmanager
def _ending_in_order() -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise Stopped

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # What is left is to write and print.


def _tuned_together(names: list[str], asked: argparse.Namespace, out: Path) -> None:
    begun = time.perf_counter()
    with ThreadPoolExecutor(asked.parallel) as pool:
        searches = [pool.submit(_searched, name, asked, out) for name in names]
        try:
            wait(searches)
        except Stopped:
            for search in searches:
                search.cancel()
            for child in list(_CHILDREN):
                child.send_signal(signal.SIGINT)
            raise
    for search in searches:
        search.result()
    each_s = max(0.0, begun + asked.limit - time.perf_counter()) / len(names)
    for name in names:
        _measured_again(name, asked, out, time.perf_counter() + each_s)


def _programs(asked: argparse.Namespace) -> dict[str, Program]:
    small = ("--small",) if asked.small else ()
    known = {path.stem: Program((path.name, *small)) for path in sorted(PROGRAMS.glob("*.py"))}
    if asked.clones:
        for name, told in msgspec.toml.decode((OTHERS / "programs.toml").read_bytes()).items():
            clone = Path(asked.clones, told["source"].rpartition("/")[2])
            if clone.is_dir():
                known[name] = Program(tuple(told["command"]), clone, told["data"])
            else:
                print(f"{name} is left out: there is no {clone}.", file=sys.stderr)
    return known


def _searched(name: str, asked: argparse.Namespace, out: Path) -> None:
    folder = (out / name).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    for version in ("original", "tuned"):
        (folder / version).mkdir(parents=True)
        _programs(asked)[name].copy_into(folder / version)
    found: dict[str, Any] = {"program": name}
    begun = time.perf_counter()
    try:
        _run_search(name, folder, asked.limit * _SEARCHING)
    finally:
        found |= _found(folder)
        found["seconds"] = time.perf_counter() - begun
        _keep(out, found)


def _measured_again(name: str, asked: argparse.Namespace, out: Path, until: float) -> None:
    folder = (out / name).absolute()
    found = json.loads((out / f"{name}.json").read_text())
    begun = time.perf_counter()
    if found.get("outcome", {}).get("verdict") == "verified":
        found["plain"] = _plain(_programs(asked)[name], folder, found, until)
    shutil.rmtree(folder / "caches", ignore_errors=True)
    found["seconds"] += time.perf_counter() - begun
    _keep(out, found)
    second = _again(found)
    print(
        f"{name}: {found['seconds']:.0f} s {found.get('error') or found['outcome']['reason']}"
        + (f"; again {second}" if second else ""),
        flush=True,
    )


def _run_search(name: str, folder: Path, limit_s: float) -> None:
    command = [sys.executable, str(Path(__file__).absolute()), *sys.argv[1:], "--search", name]
    with (folder / "log.txt").open("w") as log:
        child = subprocess.Popen(
            command, cwd=folder / "tuned", stdout=log, stderr=log, start_new_session=True
        )
        _CHILDREN.append(child)
        try:
            child.wait(limit_s + _LEAVING_S)
        except (subprocess.TimeoutExpired, Stopped) as reason:
            child.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                child.wait(_LEAVING_S)
            child.kill()
            child.wait()
            if isinstance(reason, Stopped):
                raise


def _found(folder: Path) -> dict[str, Any]:
    """What the search wrote, or the last that it said."""
    with suppress(OSError, ValueError):
        return dict(json.loads((folder / "found.json").read_text()))
    lines = (folder / "log.txt").read_text().strip().splitlines()
    return {"error": lines[-1] if lines else "the search said nothing"}


def _keep(out: Path, found: dict[str, Any]) -> None:
    with _KEEPING:
        (out / f"{found['program']}.json").write_text(json.dumps(found, indent=1))
        (out / "table.md").write_text(_table(out)[0] + "\n")


def _search(name: str, asked: argparse.Namespace) -> None:
    """In a process of its own, in the folder of the copy, which gets the tuned text."""
    from compilescope.apps.cli.progress import ended_in_order
    from compilescope.base.processes.deadline import Deadline
    from compilescope.change.tune.options import TuneOptions
    from compilescope.change.tune.search import tune
    from compilescope.instrument.recorder.target import Target

    caches = Path("../caches").resolve()
    caches.mkdir()
    budget_s = asked.limit * _SEARCHING
    begun = time.perf_counter()
    options = TuneOptions(
        only=frozenset(asked.only),
        lower_precision=asked.lower_precision,
        budget_s=budget_s,
        deadline=Deadline(budget_s),
        jobs=asked.jobs or max(1, (os.cpu_count() or 1) // 2),
        caches=caches,
        progress=lambda doing, done, total: print(
            f"{time.perf_counter() - begun:.1f} {doing} {done or ''}", flush=True
        ),
        tell=lambda line: print(f"{time.perf_counter() - begun:.1f} {line}", flush=True),
    )
    program = _programs(asked)[name]
    with ended_in_order():
        result = tune(Target("script", program.words), options)
        for file, text in result.files.items():
            Path(file).write_text(text)
        if program.clone is not None and result.first is not None:
            _mark_steps(result.first.place)
        found = {
            "outcome": result.outcome,
            "attempts": result.attempts,
            "caches": "-".join(each.id for each in result.kept),
        }
        Path("../found.json").write_bytes(msgspec.json.encode(found))


def _mark_steps(place: StepPlace) -> None:
    """In the tuned text and in the original."""
    from compilescope.change.tune.step_place import marked

    ours = Path(place.file)
    theirs = Path("../original").resolve() / ours.relative_to(Path.cwd())
    for file in (ours, theirs):
        file.write_text(marked(file.read_text(), [place]))


def _plain(
    program: Program, folder: Path, found: dict[str, Any], until: float
) -> dict[str, list[list[float]]]:
    """Milliseconds a step, a row for each pair of runs. Another pair is run if it ends in time."""
    rows: dict[str, list[list[float]]] = {version: [] for version in _VERSIONS}
    # What was compiled in the search is not compiled again.
    caches = {"original": _caches(folder, "original"), "tuned": _caches(folder, found["caches"])}
    longest_s = 0.0
    for number in range(_MOST_PAIRS):
        if number and time.perf_counter() + longest_s > until:
            break
        begun = time.perf_counter()
        pair: dict[str, _Run] = {}
        for version in _VERSIONS:
            environment = {
                **os.environ,
                "TORCHINDUCTOR_CACHE_DIR": str(caches[version]),
                "TRITON_CACHE_DIR": f"{caches[version]}/triton",
                **(found["outcome"].get("environment", {}) if version == "tuned" else {}),
            }
            way = "clock" if program.clone is None else "marks"
            pair[version] = _Run(folder / version, [way, *program.words], environment)
        try:
            _take_turns(list(pair.values()))
            times = {version: run.result() for version, run in pair.items()}
        finally:
            for run in pair.values():
                run.close()
        longest_s = max(longest_s, time.perf_counter() - begun)
        windows = min(map(len, times.values()))
        if not windows:
            break
        for version in _VERSIONS:
            rows[version].append(times[version][:windows])
    return rows


def _caches(folder: Path, name: str) -> Path:
    """What the search compiled of a version: its last folder that is named `NUMBER-NAME`."""
    numbers = {
        int(number): each
        for each in (folder / "caches").iterdir()
        for number, _, rest in [each.name.partition("-")]
        if rest == name[:60]
    }
    return numbers[max(numbers)] if numbers else folder / "caches" / name


class _Run:
    """A program that waits for its turn each time it reads the clock."""

    def __init__(self, folder: Path, words: list[str], environment: dict[str, str]) -> None:
        theirs, self._ours = os.pipe()
        self._said, write = os.pipe()
        self._output = folder / "stdout.txt"
        command = [sys.executable, str(_TURN), str(theirs), str(write), *words]
        with self._output.open("w") as out, (folder / "stderr.txt").open("w") as err:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdout=out,
                stderr=err,
                pass_fds=[theirs, write],
            )
        os.close(theirs)
        os.close(write)

    def waits(self) -> bool:
        """Wait until it does; False once it has ended, or does not come so far."""
        heard, _, _ = select.select([self._said], [], [], _LONGEST_S)
        return bool(heard and os.read(self._said, 1))

    def go(self) -> None:
        with suppress(BrokenPipeError):
            os.write(self._ours, b".")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)
        os.close(self._said)

    def result(self) -> list[float]:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_LEAVING_S)
        lines = [x for x in self._output.read_text().splitlines() if x.startswith("step_ms ")]
        return [float(each) for each in lines[-1].split()[1:]] if lines else []


def _take_turns(runs: list[_Run]) -> None:
    """Both are at their first measured step before either goes on; the first is now one, now the
    other."""
    turn, waiting = 0, [run for run in runs if run.waits()]
    while waiting:
        for run in waiting if turn % 2 else waiting[::-1]:
            run.go()
            if not run.waits():
                waiting = [each for each in waiting if each is not run]
        turn += 1


def _again(found: dict[str, Any]) -> Speedup | None:
    plain = found.get("plain")
    second = ratio(plain["original"], plain["tuned"], paired=True) if plain else None
    if second is None:
        return None
    return Speedup(second.value, second.low or second.value, second.high or second.value)


def _table(out: Path) -> tuple[str, int]:
    """And how many of what was offered are slower in the independent measurement."""
    lines = [
        "| program | before | after | speed-up | measured again | candidates | compile | memory "
        "| not tried | time |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    first: list[Speedup] = []
    again: list[Speedup] = []
    offered = slower = failed = 0
    for file in sorted(out.glob("*.json")):
        found = json.loads(file.read_text())
        outcome, name = found.get("outcome"), found["program"]
        if outcome is None:
            lines.append(f"| {name} | | | {found.get('error', '')[:80]} | | | | | | |")
            failed += 1
            continue
        second = _again(found)
        if outcome["verdict"] == "verified":
            first.append(Speedup(outcome["speedup"], *outcome["speedup_ci"]))
            offered += 1
            slower += second is not None and second.high < 1
            again += [second] if second is not None else []
        else:
            first.append(Speedup(1.0, 1.0, 1.0))
            again.append(Speedup(1.0, 1.0, 1.0))
        kept = ", ".join(each["candidate"] for each in found["attempts"] if each.get("kept"))
        untried = sum("for lack of time" in each["reason"] for each in found["attempts"])
        seconds, memory = outcome.get("compile_seconds"), outcome.get("memory_bytes")
        lines.append(
            f"| {name} | {_ms(outcome.get('before_ms'))} | {_ms(outcome.get('after_ms'))} "
            f"| {first[-1] if kept else outcome['reason']} | {second or ''} | {kept} "
            f"| {'' if seconds is None else f'{seconds:+.0f} s'} "
            f"| {'' if memory is None else f'{memory / 1e9:+.2f} GB'} "
            f"| {untried or ''} | {found['seconds']:.0f} s |"
        )
    if first:
        lines.append(
            f"\nGeometric mean of {len(first)} programs (1 where nothing is offered): "
            f"{_mean(first)}; of {len(again)} measured again by the programs themselves: "
            f"{_mean(again)}. Offered for {offered}, slower there: {slower}; without a result: "
            f"{failed}."
        )
    return "\n".join(lines), slower


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} ms"


def _mean(values: list[Speedup]) -> Speedup:
    """Geometric; the programs' errors are independent of one another."""
    count = len(values) or 1
    middle = sum(math.log(each.value) for each in values) / count
    below = math.hypot(*(math.log(each.value / each.low) for each in values)) / count
    above = math.hypot(*(math.log(each.high / each.value) for each in values)) / count
    return Speedup(math.exp(middle), math.exp(middle - below), math.exp(middle + above))


if __name__ == "__main__":
    sys.exit(main())
