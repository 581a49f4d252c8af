"""What the page of runs costs with 5,000 runs: CPU time of the server, and the size of the page.

    python benchmarks/dashboard_runs.py [--runs 5000] [--repeat 5] [--from FOLDER ...]

Real runs are recorded first: examples/train_storm.py, examples/generate.py and the demo's quick.py
under `compilescope run`, a log of tests/logs/golden under `compilescope logs`. Each folder of the
home is a copy of one of them (events and artifacts are hard links: nothing changes them) with an
id, a start time ten minutes before the last, an exit status, arguments and, for every fifth, tags
and a note of its own. `--from` takes runs that were recorded before instead.

The server is `compilescope serve` in a process of its own. Its CPU time, user and system of all
threads, is read before and after each request; the process that reads runs for the index is not
part of it. Medians over the repeats; `first page` is the first request to a new server.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
import psutil

from compilescope.record.header import read_header, write_header
from compilescope.record.home import list_runs
from compilescope.record.labels import Labels, write_labels

ROOT = Path(__file__).parent.parent
PROGRAMS = (
    ("run", "examples/train_storm.py"),
    ("run", "examples/generate.py"),
    ("run", "src/compilescope/apps/demo/programs/quick.py"),
    ("logs", "tests/logs/golden/torch_trace_eager.log.xz"),
)
BAR_MS = 300
APART_S = 600
TAGS = ("baseline", "a100", "fp16", "nightly", "regression")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--from", dest="recorded", type=Path, nargs="*", metavar="FOLDER")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dashboard-runs-") as folder:
        recorded = options.recorded or record(Path(folder) / "recorded")
        home = Path(folder) / ".compilescope"
        make_home(home, recorded, options.runs)
        print(f"{options.runs:,} runs, copies of {len(recorded)}: ", end="")
        print(", ".join(f"{path.name} ({size(path)})" for path in recorded))
        measure(home, options.runs, options.repeat)


def record(home: Path) -> list[Path]:
    for command, program in PROGRAMS:
        words = [sys.executable, "-m", "compilescope", command, "--dir", str(home), program]
        print("recording", program, file=sys.stderr)
        subprocess.run(words, cwd=ROOT, check=False, capture_output=True)
    return [path for path, _ in list_runs(home)[0]]


def size(folder: Path) -> str:
    events = sum(path.stat().st_size for path in folder.glob("events-*.jsonl"))
    return f"{events / 1000:.0f} kB of events"


def make_home(home: Path, recorded: list[Path], runs: int) -> None:
    now = time.time_ns()
    for number in range(runs):
        origin = recorded[number % len(recorded)]
        header = read_header(origin)
        folder = home / f"{number * 2654435761 % (1 << 24):06x}-{origin.name.partition('-')[2]}"
        folder.mkdir(parents=True)
        link(origin, folder)
        started = now - number * APART_S * 10**9
        program = header.command[-1].replace(".py", f"_{number % 40}.py")
        header = msgspec.structs.replace(
            header,
            run=folder.name,
            command=(*header.command[:-1], program, "--seed", str(number)),
            started_ns=started,
            ended_ns=started + (5 + number % 90) * 10**9,
            exit_status=1 if number % 11 == 0 else 0,
        )
        write_header(folder, header)
        if number % 5 == 0:
            tags = (TAGS[number % 4], TAGS[number % 3 + 2])
            write_labels(folder, Labels(tuple(dict.fromkeys(tags)), f"Note {number}."))


def link(origin: Path, folder: Path) -> None:
    for path in origin.rglob("*"):
        target = folder / path.relative_to(origin)
        if path.is_dir():
            target.mkdir()
        elif path.name != "run.json":
            os.link(path, target)


@contextmanager
def serving(home: Path) -> Iterator[tuple[httpx.Client, psutil.Process]]:
    words = [sys.executable, "-m", "compilescope", "serve", "--port", "0", "--dir", str(home)]
    environment = {**os.environ, "XDG_STATE_HOME": str(home.parent / "state")}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            address = next(
                word for line in process.stdout for word in line.split() if "http" in word
            )
            base, _, token = address.partition("/?token=")
            headers = {"accept": "text/html", "authorization": f"Bearer {token}"}
            with httpx.Client(base_url=base, headers=headers, timeout=120) as client:
                until(lambda: answers(client))
                yield client, psutil.Process(process.pid)
        finally:
            process.terminate()


def answers(client: httpx.Client) -> bool:
    """By a page that asks nothing of the index."""
    try:
        return client.get("/absent").status_code == 404
    except httpx.TransportError:
        return False


def until(condition: Callable[[], bool], pause_s: float = 0.05) -> None:
    while not condition():
        time.sleep(pause_s)


def cpu_ms(process: psutil.Process) -> float:
    """To the nanosecond where the kernel says so, else to its clock's tick."""
    try:
        tasks = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e6
    except (OSError, ValueError, IndexError):
        times = process.cpu_times()
        return 1000 * float(times.user + times.system)


def asked(client: httpx.Client, process: psutil.Process, path: str) -> tuple[float, float, int]:
    """CPU and wall milliseconds, and bytes."""
    before, started = cpu_ms(process), time.perf_counter()
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return cpu_ms(process) - before, 1000 * (time.perf_counter() - started), len(answer.content)


def measure(home: Path, runs: int, repeat: int) -> None:
    print(f"\n{'':34}{'CPU ms':>9}{'wall ms':>9}{'kB':>7}")
    with serving(home) as (client, process):
        tell("cold index: first page", [asked(client, process, "/")])
        before, started = cpu_ms(process), time.perf_counter()
        until(lambda: client.get("/runs.json").json()["read"] == runs, 1.0)
        wall = time.perf_counter() - started
        spent = cpu_ms(process) - before
        print(f"{'cold index: until all are read':34}{spent:9.0f}{1000 * wall:9.0f}", flush=True)
    first = []
    for _ in range(repeat):
        with serving(home) as (client, process):
            first.append(asked(client, process, "/"))
    tell(f"first page (bar: {BAR_MS} ms)", first)
    with serving(home) as (client, process):
        asked(client, process, "/")
        pages = {
            "the page again": "/",
            "page 25": "/?page=25",
            "search of two words": "/?q=seed+a100",
            "sorted by graph breaks": "/?sort=-breaks",
            "one program": "/?program=" + client.get("/runs.json").json()["runs"][0]["program"],
            "the same as data": "/runs.json",
        }
        for name, path in pages.items():
            results = []
            for _ in range(repeat):
                time.sleep(1.1)  # So that every folder is looked at again.
                results.append(asked(client, process, path))
            tell(name, results)
        print(f"\nmemory of the server: {process.memory_info().rss / 1e6:.0f} MB")
    if statistics.median(cpu for cpu, _, _ in first) >= BAR_MS:
        sys.exit("The first page missed its bar.")


def tell(name: str, results: list[tuple[float, float, int]]) -> None:
    cpu, wall, size = (statistics.median(values) for values in zip(*results, strict=True))
    print(f"{name:34}{cpu:9.0f}{wall:9.0f}{size / 1000:7.0f}", flush=True)


if __name__ == "__main__":
    main()
