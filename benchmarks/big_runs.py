"""What runs of 100,000 events cost: CPU time, peak memory and output of each command.

    python benchmarks/big_runs.py [--events 100000 ...] [--mixture NAME ...] [--command NAME ...]
                                  [--tool PATH ...] [--runs DIR] [--only-make]

Real runs are recorded first: examples/train_storm.py with its calls timed, examples/generate.py,
and subjects/many_graphs.py. A big run is made of copies of their events, as the mixtures below say:
each copy has ids, times and compile ids of its own, and its files may be others. Some mixtures are
written event by event instead (subjects/made_events.py): what no example does a thousand times.
--runs keeps what was made there and takes what is there already.

Each command runs in a process of its own; its CPU time and its peak memory are the kernel's. The
bars for 100,000 events: `show` (also --all and --json) and `explain` 5 s, the page 10 s and 3 MB,
300 MB of memory for all. A figure that has a bar is followed by PASS or MISSED. Bars of time and
memory grow with the number of events beyond that, the page's size does not; with several --events
the last column is the CPU time divided by that of the number before (2.0 where both doubled).
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from subjects.made_events import MADE, SOURCE

from compilescope.record.artifacts import DiskArtifacts
from compilescope.record.event import encode
from compilescope.record.header import RunHeader, read_header, write_header

HERE = Path(__file__).resolve().parent
TRAIN, GENERATE, GRAPHS = "train", "generate", "graphs"
PROGRAMS = {
    TRAIN: ("--time", str(HERE.parent / "examples" / "train_storm.py")),
    GENERATE: (str(HERE.parent / "examples" / "generate.py"),),
    GRAPHS: (str(HERE / "subjects" / "many_graphs.py"), "60", "aot_eager"),
}
COMMANDS = {
    "list": ("list",),
    "show": ("show", "{run}"),
    "show-json": ("show", "--json", "{run}"),
    "show-all": ("show", "--all", "{run}"),
    "explain": ("explain", "{run}"),
    "html": ("report", "--format", "html", "{run}"),
    "md": ("report", "--format", "md", "{run}"),
    "check": ("check", "--no-baseline", "--run", "{run}"),
    "compare": ("compare", "{run}", "{run}"),
}
BAR_EVENTS = 100_000
"""The bars below are for so many; a larger run may take in proportion."""
SECONDS = {
    "list": 5.0,
    "show": 5.0,
    "show-json": 5.0,
    "show-all": 5.0,
    "explain": 5.0,
    "html": 10.0,
}
MEGABYTES = 300.0
PAGE_KILOBYTES = 3000.0
_ONCE = ("ProcessStarted", "ProcessEnded")


@dataclass(frozen=True)
class Mixture:
    """How copies differ."""

    of: tuple[str, ...]
    places: int | None = None
    """In how many folders the files of the copies lie; None: each copy has files of its own."""
    ranks: int = 1
    kinds: tuple[str, ...] = ()
    """Only these kinds of events; empty: all."""
    sources: bool = True
    """The texts of the files were kept."""


MIXTURES = {
    # One training run that compiles the same functions over and over.
    "again": Mixture((TRAIN,), places=1),
    # A large code base: each copy in files of its own.
    "files": Mixture((TRAIN, GENERATE)),
    # The same, and nobody kept the sources.
    "gone": Mixture((TRAIN, GENERATE), sources=False),
    # Nothing but graph breaks, each file with a few of them.
    "breaks": Mixture((TRAIN, GENERATE), kinds=("GraphBreak", "SourceSeen")),
    # Nothing but recompiles of functions in many files.
    "recompiles": Mixture((TRAIN, GENERATE), kinds=("Recompile", "CompileTime", "SourceSeen")),
    # Graphs upon graphs.
    "graphs": Mixture((GRAPHS,), places=50),
    # A job of 64 processes that do the same.
    "ranks": Mixture((TRAIN, GRAPHS), places=20, ranks=64),
    # A job of weeks: the steps of compiled functions, timed.
    "steps": Mixture((TRAIN,), places=5, kinds=("GraphTime", "RegionTime", "GraphCaptured")),
    # Functions that fell back to eager, in many files.
    "eager": Mixture((TRAIN, GENERATE), kinds=("FrameSkipped", "SourceSeen")),
    # All of it.
    "mixed": Mixture((TRAIN, GENERATE, GRAPHS), places=100, ranks=8),
}


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="big-runs-") as scratch:
        home = (options.runs or Path(scratch)).resolve()
        origins = record(home / "origins") if set(options.mixture) & set(MIXTURES) else {}
        print(
            f"{'mixture':12}{'events':>9}  {'command':10}"
            f"{'CPU s':>8}{'':7}{'MB':>7}{'':7}{'output kB':>11}{'':7}{'growth':>7}"
        )
        missed = 0
        for events in options.events:
            for name in options.mixture:
                folder = home / f"{name}-{events}"
                made = (
                    written(folder, name, events)
                    if name in MADE
                    else make(folder, MIXTURES[name], events, origins)
                )
                for tool in [] if options.only_make else options.tool:
                    missed += measure(tool, made, name, events, options.command)
    if missed:
        sys.exit(f"{missed} of the figures missed their bars.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    beside = Path(sys.executable).parent / "compilescope"
    parser.add_argument("--events", type=int, nargs="+", default=[100_000])
    every = [*MIXTURES, *MADE]
    parser.add_argument("--mixture", nargs="+", choices=every, default=every)
    parser.add_argument("--command", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--tool", nargs="+", default=[str(beside)])
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--only-make", action="store_true")
    return parser.parse_args()


def record(home: Path) -> dict[str, Path]:
    """The folders of real runs, by the names of their programs."""
    found = {}
    for name, program in PROGRAMS.items():
        runs = home / name / "runs"
        if not runs.exists():
            print("recording", name, file=sys.stderr)
            runs.mkdir(parents=True)
            words = [sys.executable, "-m", "compilescope", "run", "-q", "--dir", str(runs)]
            # Where a sampled sequence ends the program may fail: its events are as good.
            subprocess.run([*words, *program], cwd=home / name, check=False, capture_output=True)
        found[name] = next(path for path in runs.iterdir() if (path / "run.json").exists())
    return found


@dataclass(frozen=True)
class Origin:
    """A recorded run whose events are copied."""

    lines: tuple[dict[str, Any], ...]
    texts: tuple[dict[str, Any], ...]
    """Short texts that its events name, which stand between them."""
    root: str
    artifacts: DiskArtifacts
    folder: Path
    frames: int
    """Frame ids of its compilations: those of a copy begin after them."""
    nanoseconds: int

    @staticmethod
    def of(folder: Path, mixture: Mixture) -> Origin:
        read = [
            msgspec.json.decode(line)
            for line in (folder / "events-0.jsonl").read_bytes().splitlines()
        ]
        lines = [line for line in read if "body" in line]
        frames = [int(line["compile_id"].split("/")[0]) for line in lines if "compile_id" in line]
        return Origin(
            lines=tuple(
                line
                for line in lines
                if line["body"]["kind"] not in _ONCE
                and (not mixture.kinds or line["body"]["kind"] in mixture.kinds)
            ),
            texts=tuple(line for line in read if "artifact" in line),
            root=read_header(folder).root,
            artifacts=DiskArtifacts(folder / "artifacts"),
            folder=folder,
            frames=max(frames) + 1,
            nanoseconds=lines[-1]["time_ns"] - lines[0]["time_ns"],
        )


def make(home: Path, mixture: Mixture, events: int, origins: dict[str, Path]) -> Path:
    """A folder of runs with the big one in it, and that one's folder."""
    folder = home / "b16b16-big"
    if folder.exists():
        return folder
    folder.mkdir(parents=True)
    found = [Origin.of(origins[name], mixture) for name in mixture.of]
    maker = _Maker(folder, mixture, found)
    maker.write(events)
    header = read_header(found[0].folder)
    write_header(
        folder,
        msgspec.structs.replace(
            header, run=folder.name, command=("train.py",), root="/project", main_pid=1000
        ),
    )
    return folder


def written(home: Path, name: str, events: int) -> Path:
    """As `make`, of events that no program recorded."""
    folder = home / "b16b16-big"
    if folder.exists():
        return folder
    folder.mkdir(parents=True)
    kept = DiskArtifacts(folder / "artifacts").put(SOURCE, "py")
    with (folder / "events-0.jsonl").open("wb") as file:
        for number in range(events):
            file.write(encode(MADE[name](number, events, kept)) + b"\n")
    write_header(
        folder,
        RunHeader(
            run=folder.name,
            tool="benchmark",
            command=("train.py",),
            cwd="/project",
            root="/project",
            exit_status=0,
            main_pid=1000,
        ),
    )
    return folder


class _Maker:
    def __init__(self, folder: Path, mixture: Mixture, origins: list[Origin]) -> None:
        self._mixture = mixture
        self._origins = origins
        self._artifacts = DiskArtifacts(folder / "artifacts")
        self._files = [(folder / f"events-{n}.jsonl").open("wb") for n in range(mixture.ranks)]
        self._counts = [0] * mixture.ranks
        self._frames = [0] * mixture.ranks
        self._time = 1_700_000_000_000_000_000
        self._told: set[tuple[int, str]] = set()
        self._random = random.Random(13)
        for origin in origins:
            for text in origin.texts:
                self._files[0].write(msgspec.json.encode(text) + b"\n")
            for path in (origin.folder / "artifacts").glob("*"):
                target = folder / "artifacts" / path.name
                target.parent.mkdir(exist_ok=True)
                if not target.exists():
                    os.link(path, target)

    def write(self, events: int) -> None:
        for rank in range(self._mixture.ranks):
            body = {"argv": ["train.py"], "python": "3.11.7", "torch": "2.13.0", "parent_pid": 1}
            self._put(rank, {"body": {"kind": "ProcessStarted", **body}})
        copy = 0
        written = 0
        while written < events - 2 * self._mixture.ranks:
            origin = self._origins[copy % len(self._origins)]
            for line in self._copied(origin, copy):
                if written >= events - 2 * self._mixture.ranks:
                    break
                self._put(copy % self._mixture.ranks, line)
                written += 1
            self._frames[copy % self._mixture.ranks] += origin.frames
            self._time += origin.nanoseconds
            copy += 1
        for rank, file in enumerate(self._files):
            self._put(rank, {"body": {"kind": "ProcessEnded"}})
            file.close()

    def _put(self, rank: int, line: dict[str, Any]) -> None:
        number = self._counts[rank]
        envelope = {"id": f"{rank}.{number}", "time_ns": self._time + number, "pid": 1000 + rank}
        if rank:
            envelope["rank"] = rank
        self._counts[rank] += 1
        self._files[rank].write(msgspec.json.encode({**envelope, **line}) + b"\n")

    def _copied(self, origin: Origin, copy: int) -> Iterator[dict[str, Any]]:
        rank, places = copy % self._mixture.ranks, self._mixture.places
        place = f"/project/part_{copy if places is None else copy // len(self._origins) % places}"
        first, frame = self._counts[rank], self._frames[rank]
        numbers = {line["id"]: f"{rank}.{first + n}" for n, line in enumerate(origin.lines)}
        kept = 0
        for line in origin.lines:
            body = _moved(line["body"], origin.root, place)
            if body["kind"] == "SourceSeen" and not self._is_news(rank, body, place):
                continue
            numbers[line["id"]] = f"{rank}.{first + kept}"
            kept += 1
            for name in ("because", "captured"):
                if isinstance(body.get(name), str):
                    body[name] = numbers.get(body[name], body[name])
            copied = {"thread": line["thread"], "body": _renumbered(body, frame)}
            if "compile_id" in line:
                copied["compile_id"] = _after(line["compile_id"], frame)
            if "stack" in line:
                copied["stack"] = _moved(line["stack"], origin.root, place)
            if body["kind"] == "CompileTime":
                body["duration_ns"] = int(body["duration_ns"] * self._random.uniform(0.5, 2))
            yield copied

    def _is_news(self, rank: int, body: dict[str, Any], place: str) -> bool:
        """A process records a file once; each copy of a file differs in its last line."""
        if not self._mixture.sources or (rank, body["file"]) in self._told:
            return False
        self._told.add((rank, body["file"]))
        text = next(filter(None, (one.artifacts.get(body["artifact"]) for one in self._origins)))
        if body["file"].startswith(place):
            body["artifact"] = self._artifacts.put(f"{text}\n# {place}\n", "py")
        return True


def _moved(value: Any, root: str, place: str) -> Any:
    """With the program's files elsewhere."""
    if isinstance(value, dict):
        return {
            key: f"{place}{each[len(root) :]}"
            if key == "file" and each.startswith(root)
            else _moved(each, root, place)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_moved(each, root, place) for each in value]
    return value


def _renumbered(value: Any, frame: int) -> Any:
    """With compile ids of the copy."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key in ("compile_id", "graph") and isinstance(each, str) and "/" in each:
                value[key] = _after(each, frame)
            else:
                _renumbered(each, frame)
    elif isinstance(value, list):
        for each in value:
            _renumbered(each, frame)
    return value


def _after(compile_id: str, frame: int) -> str:
    number, slash, rest = compile_id.partition("/")
    return f"{int(number) + frame}{slash}{rest}" if number.isdigit() else compile_id


@dataclass(frozen=True)
class Cost:
    """What one command took."""

    seconds: float
    megabytes: float
    kilobytes: float
    """Of output."""
    said: str
    """On stderr, where it ended in a traceback."""


def cost_of(tool: str, run: Path, command: str) -> Cost:
    words = [word.format(run=run) for word in COMMANDS[command]]
    where = ["--dir", str(run.parent)]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([tool, *words, *where], stdout=output, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        size = output.seek(0, os.SEEK_END)
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
    return Cost(
        seconds=used.ru_utime + used.ru_stime,
        megabytes=used.ru_maxrss / 1024,
        kilobytes=size / 1000,
        said=f"exit {process.returncode}: {said[-300:]}" if "Traceback" in said else "",
    )


def bars_of(command: str, events: int) -> tuple[float | None, float, float | None]:
    """Seconds, megabytes and kilobytes of output; None where there is none."""
    share = max(events / BAR_EVENTS, 1.0)
    seconds = SECONDS.get(command)
    page = PAGE_KILOBYTES if command == "html" else None
    return (None if seconds is None else seconds * share), MEGABYTES * share, page


def row(command: str, events: int, cost: Cost) -> tuple[str, int]:
    """The figures, each with its verdict, and how many missed their bars."""
    parts, missed = [], 0
    figures = (cost.seconds, cost.megabytes, cost.kilobytes)
    forms = ("8.2f", "7.0f", "11,.0f")
    for figure, form, bar in zip(figures, forms, bars_of(command, events), strict=True):
        verdict = "" if bar is None else "PASS" if figure <= bar else "MISSED"
        missed += verdict == "MISSED"
        parts.append(f"{figure:{form}} {verdict:6}")
    return "".join(parts), missed


def measure(tool: str, run: Path, mixture: str, events: int, commands: list[str]) -> int:
    """How many of the figures missed their bars."""
    missed = 0
    for command in commands:
        cost = cost_of(tool, run, command)
        figures, over = row(command, events, cost)
        missed += over
        before = _MEASURED.get((tool, mixture, command))
        _MEASURED[tool, mixture, command] = cost.seconds
        growth = f"{cost.seconds / before:7.1f}" if before else ""
        line = f"{mixture:12}{events:9}  {command:10}{figures}{growth}"
        print(" ".join((line.rstrip(), cost.said)).rstrip())
        sys.stdout.flush()
    return missed


_MEASURED: dict[tuple[str, str, str], float] = {}
"""CPU seconds of the last run of a mixture, by tool, mixture and command."""


if __name__ == "__main__":
    main()
