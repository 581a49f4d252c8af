"""Reads TORCH_TRACE files from 1 MB to 1 GB, side by side with tlparse.

    python benchmarks/logs_throughput.py [--sizes 1 10 100 300 1000] [--traces DIR] [--keep DIR]
    python benchmarks/logs_throughput.py --start-up [--traces DIR] [--repeat 9]
    python benchmarks/logs_throughput.py --logs FILE... --repeat 9

Both are commands as a user calls them: `compilescope logs FILE -o RUN --report PAGE.html` reads
FILE into a run on disk and writes the HTML report of that run; tlparse is `tlparse FILE -o DIR
--no-browser`. Both read the same file, in turns where it is read several times (`--repeat`, for
small files); the medians count. `--start-up` is a row of sizes from 0.05 to 9 MB, where starting
Python and importing modules is most of what we take; where several files are read, a table of the
ratios comes last. Times are wall and CPU seconds, memory is the largest resident size, output is
all that was written. `--logs` reads files as they are. Without it the files are made of real traces
(`--traces`, a folder of them; else a few programs are run under TORCH_TRACE) by
`subjects/long_trace.py`; those smaller than a trace are its first records. `--small` makes them of
programs with many small compilations instead, `--profile` shows where the time goes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median

from subjects.long_trace import read_all, shorten, stretch

ROOT = Path(__file__).resolve().parent.parent

_SMALL_SIZES = (0.05, 0.5, 2, 4, 9)
"""MB. From a single tiny graph to where the modules no longer matter."""

_PROGRAMS = """
import sys, torch
from torch import nn
which = sys.argv[1]
if which == "train":
    net = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 64))
    step = torch.compile(net)
    for rows in (8, 8, 12, 16):
        step(torch.randn(rows, 64)).pow(2).mean().backward()
elif which == "attention":
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    net = torch.compile(nn.TransformerEncoder(layer, 3, enable_nested_tensor=False))
    for tokens in (16, 16, 24):
        net(torch.randn(2, tokens, 64)).sum().backward()
else:
    @torch.compile
    def f(x, n):
        y = x.sin()
        print("step")
        z = y.cos() * n
        if z.sum() > 0:
            z = z + 1
        return z @ z.T
    for size in (4, 5, 6, 7, 8):
        f(torch.randn(size, size), size)
"""

_AS_INSTALLED = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}
"""An installation has the bytecode of its modules; a checkout writes it in the first run."""
_OURS = [sys.executable, "-m", "compilescope", "logs"]


@dataclass
class Measured:
    wall_s: float
    cpu_s: float
    peak_mb: float
    output_mb: float


def measure(command: list[str], outputs: list[Path]) -> Measured:
    for path in outputs:
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True) if path.is_file() else None
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env=_AS_INSTALLED, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    if status:
        raise SystemExit(f"{command[0]} failed on {command[-1]}")
    size = sum(_size(path) for path in outputs) / 1e6
    return Measured(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3, size)


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def real_traces(folder: Path, small: bool) -> list[bytes]:
    """Traces of a few programs: with Inductor, or of the zoo with its many small compilations."""
    if small:
        programs = sorted((ROOT / "tests" / "zoo" / "programs").glob("*.py"))[:60]
        script = ROOT / "tests" / "logs" / "traced_programs.py"
        subprocess.run([sys.executable, str(script), str(folder), *map(str, programs)], check=True)
        return [path.read_bytes() for path in sorted(folder.glob("*/trace/*.log"))]
    for which in ("train", "attention", "breaks"):
        environment = {**os.environ, "TORCH_TRACE": str(folder / which)}
        command = [sys.executable, "-c", _PROGRAMS, which]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return list(read_all(folder))


def compare(log: Path, folder: Path, tlparse: str | None, repeat: int) -> tuple[str, float] | None:
    """Prints both; the trace's size in words, and how many times as fast we are by CPU."""
    run, page, theirs = folder / "run", folder / "report.html", folder / "tlparse"
    our_command = [*_OURS, str(log), "-o", str(run), "--report", str(page)]
    their_command = [str(tlparse), str(log), "-o", str(theirs), "--overwrite", "--no-browser"]
    ours_all, other_all = [], []
    if repeat > 1:
        measure(our_command, [run, page])  # For the bytecode; it is not counted.
    for _ in range(repeat):
        ours_all.append(measure(our_command, [run, page]))
        if tlparse is not None:
            other_all.append(measure(their_command, [theirs]))
    shutil.rmtree(theirs, ignore_errors=True)
    ours = _median(ours_all)
    size = log.stat().st_size / 1e6
    print(f"{size:8.2f} MB  ours    {_row(ours, size)}", flush=True)
    if other_all:
        other = _median(other_all)
        print(f"{'':11}  tlparse {_row(other, size)}")
        print(
            f"{'':11}  ours is {other.wall_s / ours.wall_s:.2f} times as fast by the clock, "
            f"{other.cpu_s / ours.cpu_s:.2f} times by CPU",
            flush=True,
        )
        return f"{size:.2f} MB", other.cpu_s / ours.cpu_s
    return None


def _median(all_: list[Measured]) -> Measured:
    return Measured(
        *(median(getattr(one, field.name) for one in all_) for field in fields(Measured))
    )


def _row(one: Measured, size: float) -> str:
    return (
        f"{one.wall_s:7.2f} s wall {one.cpu_s:7.2f} s CPU {size / one.cpu_s:6.1f} MB/s CPU "
        f"{one.peak_mb:7.0f} MB peak {one.output_mb:8.1f} MB out"
    )


def profile(log: Path, folder: Path) -> None:
    import cProfile
    import pstats

    from compilescope.logs.reader import read_logs

    shutil.rmtree(folder / "profiled", ignore_errors=True)
    profiler = cProfile.Profile()
    profiler.enable()
    read_logs([str(log)], folder, target=folder / "profiled")
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=float, nargs="+", default=[1, 10, 100, 300, 1000])
    parser.add_argument("--start-up", action="store_true", help="Sizes from 0.05 to 9 MB.")
    parser.add_argument("--traces", type=Path, help="Real traces to make the files of.")
    parser.add_argument("--small", action="store_true", help="Many small compilations.")
    parser.add_argument("--keep", type=Path, help="Where the files are made and left.")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--logs", type=Path, nargs="+", help="Read these, as they are.")
    parser.add_argument("--repeat", type=int, help="Read each file so often.")
    options = parser.parse_args()
    if options.start_up:
        options.sizes = _SMALL_SIZES
    repeat = options.repeat or (9 if options.start_up else 1)
    ratios = []
    beside = Path(sys.executable).parent / "tlparse"
    tlparse = str(beside) if beside.exists() else shutil.which("tlparse")
    if tlparse is None:
        print("tlparse is not here: pip install tlparse")
    with tempfile.TemporaryDirectory() as made:
        folder = options.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        for log in options.logs or ():
            ratios.append(compare(log, folder, tlparse, repeat))
        if options.logs:
            _tell(ratios)
            return
        given = options.traces
        traces = list(read_all(given)) if given else real_traces(folder / "real", options.small)
        for size in options.sizes:
            log = folder / f"trace-{size:g}mb.log"
            if not log.exists():
                _make(traces, int(size * 10**6), log)
            if options.profile:
                profile(log, folder)
            else:
                ratios.append(compare(log, folder, tlparse, repeat))
            if options.keep is None:
                log.unlink()
    _tell(ratios)


def _make(traces: list[bytes], size: int, log: Path) -> None:
    """Of the trace that is nearest in size, where one trace has enough."""
    enough = [trace for trace in traces if len(trace) >= size]
    if enough:
        shorten(min(enough, key=len), size, log)
    else:
        stretch(traces, size, log)


def _tell(ratios: list[tuple[str, float] | None]) -> None:
    """tlparse's CPU seconds / ours, a column for each trace."""
    known = [each for each in ratios if each is not None]
    if len(known) > 1:
        print("\ntrace        " + " ".join(f"{size:>10}" for size, _ in known))
        print("tlparse/ours " + " ".join(f"{ratio:>10.2f}" for _, ratio in known))


if __name__ == "__main__":
    main()
