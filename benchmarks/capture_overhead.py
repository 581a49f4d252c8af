"""What capture costs: CPU time of one program, run in four ways side by side.

    python benchmarks/capture_overhead.py [--quick] [--rounds N] [--json] [--check]

The ways are `plain`, `capture` (`compilescope run -q`), `trace` (TORCH_TRACE) and `debug`
(TORCH_COMPILE_DEBUG=1). The programs compile a small model and a transformer of 12 layers, for
inference and for training, with the inductor backend; see `subjects/model.py`.

How it is measured:

- A round runs the four ways one after the other, each round starting with another. A ratio is
  taken within its round, against `plain`; the figure is the median over the rounds, and ± is half
  the width of the interval in which 95% of such medians fall (1.57 x interquartile range / √n;
  below five rounds, the whole range of what was seen). `least` is the ratio of the smallest CPU
  times of all rounds: other programs can only add to a time, never take from it.
- `whole` is user and system CPU time of everything that was started, from `os.wait4`:
  interpreter, imports, compiling, finished children, and for `capture` the launcher too.
- `compile` is the CPU time of the program's own process while it compiles and first calls the
  model, after a function of one line has made torch load its compiler. Nothing dilutes this
  one: no start-up, no imports, no C++ compiler.
- `hooks` is thread CPU time inside compilescope's hooks, divided by the rest of the compile. It is
  read off clocks around every hook (`subjects/hook_times.py`) in a process of its own, so it does
  not suffer from the noise that hides a percent in a ratio of two processes. The same is done
  for the function through which TORCH_TRACE writes its records; what torch computes on the way
  there is not in that figure.
- `sum` is 1 + (launcher + installing the hooks + hooks) / plain's whole: what `whole` would be
  without noise. The launcher's part is `compilescope run -q` of an empty file, less a plain run
  of it. Installing is the thread CPU time of importing compilescope and putting the hooks on.
- Steady state is thread CPU time of a call of a compiled small function, over blocks of calls that
  alternate between hooks on and off in one process (`subjects/steady.py`).

Every process finds FX and AOT caches empty: it has a cache folder of its own. C++ kernels that
were built once are put in that folder, for building them takes several times as long as all
the rest and would drown what is measured; with --cold-kernels the folder is empty.
TORCHINDUCTOR_COMPILE_THREADS=1 keeps the compile in one process, and torch uses one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SUBJECTS = Path(__file__).resolve().parent / "subjects"
WORKLOADS = ("small infer", "small train", "transformer infer", "transformer train")
WAYS = ("plain", "capture", "trace", "debug")
CACHES = ("fxgraph", "aotautograd", "locks")
MOST_CAPTURE_MAY_COST = 1.03
MOST_NOISE = 0.02
"""Above it, nothing can be said of calls that should cost the same."""


@dataclass
class Sample:
    """One process: CPU seconds."""

    whole: float
    start: float
    """From the interpreter's start until torch is imported and its compiler loaded."""
    compile: float
    children: float
    """Of the program's own children, such as the C++ compiler."""
    around: float
    """Outside the program's own account: its shutdown, and compilescope's launcher."""


@dataclass
class Figure:
    """A median and how far to trust it."""

    value: float
    noise: float | None
    """Half of the 95% interval; None where one sample cannot tell."""
    samples: int

    def __str__(self) -> str:
        return f"{self.value:.3f}" + (f" ±{self.noise:.3f}" if self.noise is not None else "")


@dataclass
class Results:
    """All that was measured, in whatever state it is."""

    rounds: dict[str, list[dict[str, Sample]]] = field(default_factory=dict)
    """Workload -> its rounds: way -> sample."""
    hooks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Workload -> runs of hook_times.py under capture."""
    traces: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Workload -> runs of hook_times.py under TORCH_TRACE."""
    launcher: list[float] = field(default_factory=list)
    """CPU seconds that `compilescope run` adds to a file that does nothing."""
    steady: dict[str, Any] | None = None
    interrupted: bool = False


def figure(values: list[float]) -> Figure:
    noise = None
    if 1 < len(values) < 5:
        noise = max(values) - min(values)
    elif len(values) >= 5:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
        noise = 1.57 * (high - low) / len(values) ** 0.5
    return Figure(statistics.median(values), noise, len(values))


# Running


class Bench:
    """Starts the processes, each in a scratch folder of its own."""

    def __init__(self, scratch: Path, cold_kernels: bool) -> None:
        self._scratch = scratch
        self._cold_kernels = cold_kernels

    def build_kernels(self, workload: str) -> None:
        """Fill the store of C++ kernels that later processes find in their cache folder."""
        if not self._cold_kernels:
            with self._folder() as folder:
                self._call(_model(workload), folder)
                self._keep_kernels(folder)

    def sample(self, workload: str, way: str) -> Sample:
        """Run one workload in one way."""
        with self._folder() as folder:
            command, extra = _model(workload), {}
            if way == "capture":
                command = [
                    "-m",
                    "compilescope",
                    "run",
                    "-q",
                    "--dir",
                    str(folder / "runs"),
                    *command,
                ]
            elif way == "trace":
                extra = {"TORCH_TRACE": str(folder / "trace")}
            elif way == "debug":
                extra = {"TORCH_COMPILE_DEBUG": "1"}
            whole, marks = self._call(command, folder, extra)
        loaded, compiled = marks["loaded"], marks["compiled"]
        return Sample(
            whole=whole,
            start=loaded["own"],
            compile=compiled["own"] - loaded["own"],
            children=compiled["children"],
            around=whole - compiled["own"] - compiled["children"],
        )

    def launcher(self) -> float:
        """CPU seconds of running an empty file, under capture less plain."""
        with self._folder() as folder:
            empty = folder / "empty.py"
            empty.touch()
            plain, _ = self._call([str(empty)], folder)
            capture = ["-m", "compilescope", "run", "-q", "--dir", str(folder / "runs")]
            return self._call([*capture, str(empty)], folder)[0] - plain

    def hook_times(self, workload: str, watch: str) -> dict[str, Any]:
        with self._folder() as folder:
            extra = {"TORCH_TRACE": str(folder / "trace")} if watch == "trace" else {}
            return self._call([_subject("hook_times"), *workload.split(), watch], folder, extra)[1]

    def steady(self, rounds: int, calls: int) -> dict[str, Any]:
        with self._folder() as folder:
            return self._call([_subject("steady"), str(rounds), str(calls)], folder)[1]

    @contextlib.contextmanager
    def _folder(self) -> Iterator[Path]:
        """A place to work in, with a cache folder that holds kernels at most."""
        # Always the same path: it is part of what Inductor's cache of kernels goes by.
        folder = self._scratch / "process"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        kernels = self._scratch / "kernels"
        if kernels.exists():
            shutil.copytree(kernels, folder / "cache")
        yield folder

    def _keep_kernels(self, folder: Path) -> None:
        ignore = shutil.ignore_patterns(*CACHES)
        shutil.copytree(
            folder / "cache", self._scratch / "kernels", ignore=ignore, dirs_exist_ok=True
        )

    def _call(
        self, words: list[str], folder: Path, extra: dict[str, str] | None = None
    ) -> tuple[float, dict[str, Any]]:
        """Run Python with `words`: all its CPU seconds, and what it wrote to BENCHMARK_OUT."""
        out, output = folder / "out.json", folder / "output.txt"
        settings = {
            "BENCHMARK_OUT": str(out),
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            **(extra or {}),
        }
        with output.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=folder,
                env={**_clean_environment(), **settings},
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                _, status, usage = os.wait4(process.pid, 0)
            except BaseException:
                # The launcher has a child of its own.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            tail = output.read_text(errors="replace")[-3000:]
            sys.exit(f"{' '.join(words)} ended with {process.returncode}:\n{tail}")
        written = json.loads(out.read_text()) if out.exists() else {}
        return usage.ru_utime + usage.ru_stime, written


def _model(workload: str) -> list[str]:
    return [_subject("model"), *workload.split()]


def _subject(name: str) -> str:
    return str(SUBJECTS / f"{name}.py")


def _clean_environment() -> dict[str, str]:
    """Ours, without what would change how torch or compilescope work."""
    foreign = ("TORCH_", "TORCHINDUCTOR_", "TORCHDYNAMO_", "COMPILESCOPE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


def measure(bench: Bench, args: argparse.Namespace, results: Results) -> None:
    """Fill `results`, step by step, so that an interrupted run has what came before."""
    say = Progress(
        2 + len(args.workloads) * ((not args.cold_kernels) + 2 * args.hook_runs + 4 * args.rounds)
    )
    if not args.cold_kernels:
        for workload in args.workloads:
            say(f"building the kernels of {workload}")
            bench.build_kernels(workload)
    say("launcher")
    for _ in range(15):
        results.launcher.append(bench.launcher())
    say("steady state")
    results.steady = bench.steady(args.blocks, args.calls)
    for turn in range(max(args.rounds, args.hook_runs)):
        for workload in args.workloads:
            if turn < args.hook_runs:
                for watch, kept in (("capture", results.hooks), ("trace", results.traces)):
                    say(f"{workload}: time in the hooks of {watch}")
                    kept.setdefault(workload, []).append(bench.hook_times(workload, watch))
            if turn < args.rounds:
                this: dict[str, Sample] = {}
                results.rounds.setdefault(workload, []).append(this)
                for way in WAYS[turn % 4 :] + WAYS[: turn % 4]:
                    say(f"{workload}: {way}, round {turn + 1} of {args.rounds}")
                    this[way] = bench.sample(workload, way)


class Progress:
    """Lines on stderr."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = 0

    def __call__(self, words: str) -> None:
        self._done += 1
        print(f"[{self._done}/{self._steps}] {words}", file=sys.stderr, flush=True)


# Reading the results


def ratios(
    rounds: list[dict[str, Sample]], measure: str, way: str, base: str = "plain"
) -> Figure | None:
    """`way` against `base`, both of the same round."""
    values = [
        getattr(this[way], measure) / getattr(this[base], measure)
        for this in rounds
        if way in this and base in this
    ]
    return figure(values) if values else None


def least(rounds: list[dict[str, Sample]], measure: str, way: str) -> float | None:
    """The smallest of `way` against the smallest of `plain`."""
    ours = [getattr(this[way], measure) for this in rounds if way in this]
    plain = [getattr(this["plain"], measure) for this in rounds if "plain" in this]
    return min(ours) / min(plain) if ours and plain else None


def seconds(rounds: list[dict[str, Sample]], measure: str, way: str) -> Figure | None:
    values = [getattr(this[way], measure) for this in rounds if way in this]
    return figure(values) if values else None


def hook_share(runs: list[dict[str, Any]]) -> Figure | None:
    """Time in hooks, as 1 + its part of the compile without them: comparable to a ratio."""
    values = []
    for run in runs:
        ours = sum(hook["seconds"] for hook in run["hooks"].values())
        values.append(run["compile"] / (run["compile"] - ours))
    return figure(values) if values else None


def whole_by_sum(results: Results, workload: str) -> Figure | None:
    """What `whole` should be, from parts that were measured one by one."""
    plain = seconds(results.rounds.get(workload, []), "whole", "plain")
    runs = results.hooks.get(workload, [])
    if plain is None or not runs or not results.launcher:
        return None
    launcher = statistics.median(results.launcher)
    return figure(
        [
            1
            + (launcher + run["install"] + sum(h["seconds"] for h in run["hooks"].values()))
            / plain.value
            for run in runs
        ]
    )


def hook_table(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each hook: calls, and the median over the runs of its milliseconds and its share."""
    rows = []
    for name in {name for run in runs for name in run["hooks"]}:
        of = [(run["hooks"][name], run["compile"]) for run in runs if name in run["hooks"]]
        milliseconds = statistics.median(hook["seconds"] * 1e3 for hook, _ in of)
        percent = statistics.median(100 * hook["seconds"] / whole for hook, whole in of)
        calls = statistics.median_low(hook["calls"] for hook, _ in of)
        rows.append({"hook": name, "calls": calls, "ms": milliseconds, "percent": percent})
    return sorted(rows, key=lambda row: -row["ms"])


def steady_ratios(steady: dict[str, Any]) -> dict[str, Figure]:
    plain = steady["blocks"]["plain"]
    return {
        name: figure([ours / theirs for ours, theirs in zip(blocks, plain, strict=True)])
        for name, blocks in steady["blocks"].items()
        if name != "plain"
    }


def verdict(found: Figure | None, most: float) -> str:
    """FAIL and PASS where the bar lies outside the noise, else unknown."""
    if found is None or found.noise is None:
        return "unknown"
    if abs(found.value - most) < found.noise:
        return "unknown"
    return "PASS" if found.value <= most else "FAIL"


def steady_verdict(found: Figure) -> str:
    if found.noise is None or found.noise > MOST_NOISE:
        return "unknown"
    # A difference below what two decimals show is none.
    return "PASS" if found.value - max(found.noise, 0.005) <= 1.0 else "FAIL"


def bars(results: Results) -> list[dict[str, Any]]:
    """Each bar, what was found, and whether it holds."""
    rows: list[dict[str, Any]] = []

    def add(bar: str, workload: str, by: str, found: Figure | None, says: str) -> None:
        rows.append({"bar": bar, "workload": workload, "by": by, "found": found, "verdict": says})

    limit = f"capture <= {MOST_CAPTURE_MAY_COST:.2f}x plain"
    for workload in results.rounds.keys() | results.hooks.keys():
        rounds = results.rounds.get(workload, [])
        for by in ("whole", "compile"):
            found = ratios(rounds, by, "capture")
            add(limit, workload, by, found, verdict(found, MOST_CAPTURE_MAY_COST))
        found = whole_by_sum(results, workload)
        add(limit, workload, "sum", found, verdict(found, MOST_CAPTURE_MAY_COST))
        found_hooks = hook_share(results.hooks.get(workload, []))
        says = verdict(found_hooks, MOST_CAPTURE_MAY_COST)
        add(limit, workload, "hooks", found_hooks, says)
        for by in ("whole", "compile"):
            found = ratios(rounds, by, "capture", "trace")
            add("capture < TORCH_TRACE", workload, by, found, verdict(found, 1.0))
        trace = hook_share(results.traces.get(workload, []))
        if found_hooks is not None and trace is not None:
            noises = found_hooks.noise, trace.noise
            noise = None if noises[0] is None or noises[1] is None else noises[0] + noises[1]
            found = Figure(found_hooks.value / trace.value, noise, trace.samples)
            add("capture < TORCH_TRACE", workload, "hooks", found, verdict(found, 1.0))
    order = {bar: index for index, bar in enumerate((limit, "capture < TORCH_TRACE"))}
    rows.sort(key=lambda row: (order[row["bar"]], WORKLOADS.index(row["workload"])))
    if results.steady:
        for name, found in steady_ratios(results.steady).items():
            words = name.replace("_", " ")
            add("steady state 1.00x", words, "calls", found, steady_verdict(found))
    return rows


# Printing


def text(results: Results, args: argparse.Namespace) -> str:
    lines = [_conditions(args)]
    if results.interrupted:
        lines.append("Interrupted: these are the rounds that were finished.")
    lines += ["", *_ratio_lines(results), *_hook_lines(results), *_steady_lines(results)]
    lines += ["Bars", ""]
    for row in bars(results):
        found = str(row["found"] or "-")
        lines.append(
            f"  {row['verdict']:8} {row['bar']:24} {row['workload']:22} {row['by']:8} {found}"
        )
    return "\n".join(lines)


def _ratio_lines(results: Results) -> list[str]:
    columns = f"{'CPU':>8} {'x plain':>14} {'least':>7}"
    lines = [
        "CPU seconds and ratios to plain within a round: medians ± noise, and ratios of the least",
        "",
        f"{'':27} {'whole':>31} {'compile':>31}",
        f"{'':27} {columns} {columns}",
    ]
    for workload, rounds in results.rounds.items():
        for way in WAYS:
            cells = []
            for measure in ("whole", "compile"):
                found, low = seconds(rounds, measure, way), least(rounds, measure, way)
                ratio = ratios(rounds, measure, way)
                other = way != "plain"
                cells += [
                    f"{f'{found.value:.2f} s' if found else '-':>8}",
                    f"{str(ratio or '-') if other else '':>14}",
                    f"{(f'{low:.3f}' if low else '-') if other else '':>7}",
                ]
            title = workload if way == "plain" else ""
            lines.append(f"{title:18} {way:8} {' '.join(cells)}".rstrip())
        counts = [sum(way in this for this in rounds) for way in WAYS]
        lines.append(f"{'':18} (rounds: {min(counts)})")
    if not results.rounds:
        return []
    lines += [
        "",
        "whole: user+sys of all processes by wait4, the launcher's too. compile: CPU time of the",
        "program's process once torch has loaded its compiler: no start-up, no imports, no C++.",
        "",
        "What capture adds, CPU seconds: median over rounds of capture - plain",
        "",
        f"{'':18} {'start':>9} {'compile':>9} {'children':>9} {'launcher, end':>14}",
    ]
    for workload, rounds in results.rounds.items():
        cells = []
        for measure in ("start", "compile", "children", "around"):
            differences = [
                getattr(this["capture"], measure) - getattr(this["plain"], measure)
                for this in rounds
                if "capture" in this and "plain" in this
            ]
            cells.append(f"{statistics.median(differences):+.3f}" if differences else "-")
        lines.append(f"{workload:18} {cells[0]:>9} {cells[1]:>9} {cells[2]:>9} {cells[3]:>14}")
    if results.launcher:
        alone = statistics.median(results.launcher)
        lines.append(f"The launcher alone, on an empty file: {alone:+.3f} (wait4, median of 15).")
    return [*lines, ""]


def _hook_lines(results: Results) -> list[str]:
    lines = []
    for workload, runs in results.hooks.items():
        share = hook_share(runs)
        if share is None:
            continue
        whole = statistics.median(run["compile"] for run in runs)
        install = statistics.median(run["install"] for run in runs)
        percent = 100 * (share.value - 1)
        lines += [
            f"Hooks, {workload}: {percent:.2f}% of {whole:.2f} s; to put them on {install:.3f} s;"
            f" TORCH_TRACE {_percent(hook_share(results.traces.get(workload, [])))}",
            "thread CPU time inside each hook, clocked exactly, as a part of the compile's:"
            f" medians of {len(runs)}",
            f"{'':44} {'calls':>6} {'ms':>9} {'%':>7}",
        ]
        lines += [
            f"  {row['hook']:42} {row['calls']:6} {row['ms']:9.2f} {row['percent']:7.3f}"
            for row in hook_table(runs)
        ]
        lines.append("")
    return lines


def _percent(share: Figure | None) -> str:
    return f"{100 * (share.value - 1):.2f}%" if share else "unknown"


def _steady_lines(results: Results) -> list[str]:
    if not results.steady:
        return []
    blocks = results.steady["blocks"]
    plain = statistics.median(blocks["plain"])
    lines = [
        f"Steady state: thread CPU time of a call, medians of {len(blocks['plain'])} blocks that"
        " alternate in one process",
        "",
        f"  {'plain':24} {plain:8.2f} us",
    ]
    for name, found in steady_ratios(results.steady).items():
        value = statistics.median(blocks[name])
        low = min(blocks[name]) / min(blocks["plain"])
        lines.append(f"  {name.replace('_', ' '):24} {value:8.2f} us  {found}x  least {low:.3f}x")
    if results.steady["events"]:
        lines.append(f"  {results.steady['events']} events came in: something compiled again.")
    return [*lines, ""]


def _conditions(args: argparse.Namespace) -> str:
    from importlib.metadata import version

    kernels = "built in each process" if args.cold_kernels else "built beforehand"
    return (
        f"torch {version('torch')}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}\nbackend inductor, FX and AOT caches cold, "
        f"C++ kernels {kernels}, one compile thread, one torch thread"
    )


def as_json(results: Results, args: argparse.Namespace) -> str:
    ratio_rows = {
        workload: {
            way: {
                measure: {
                    "seconds": seconds(rounds, measure, way),
                    "ratio": ratios(rounds, measure, way),
                    "least": least(rounds, measure, way),
                }
                for measure in ("whole", "compile")
            }
            for way in WAYS
        }
        for workload, rounds in results.rounds.items()
    }
    content = {
        "conditions": _conditions(args).splitlines(),
        "interrupted": results.interrupted,
        "ratios": ratio_rows,
        "hooks": {
            workload: {
                "share": hook_share(runs),
                "share_of_trace": hook_share(results.traces.get(workload, [])),
                "by_hook": hook_table(runs),
            }
            for workload, runs in results.hooks.items()
        },
        "launcher_seconds": figure(results.launcher) if results.launcher else None,
        "steady": results.steady
        and {
            "microseconds": {
                name: statistics.median(blocks) for name, blocks in results.steady["blocks"].items()
            },
            "ratios": steady_ratios(results.steady),
            "events": results.steady["events"],
        },
        "bars": bars(results),
        "samples": results.rounds,
    }
    return json.dumps(content, indent=2, default=asdict)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of the four ways (7)")
    parser.add_argument("--quick", action="store_true", help="the small model only, 3 rounds")
    parser.add_argument(
        "--only", action="append", choices=WORKLOADS, metavar="WORKLOAD", help="one workload"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bar does not hold")
    parser.add_argument(
        "--cold-kernels", action="store_true", help="let every process build its C++ kernels"
    )
    args = parser.parse_args()
    args.workloads = args.only or (WORKLOADS[:2] if args.quick else WORKLOADS)
    if args.rounds is None:
        args.rounds = 3 if args.quick else 7
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    args.hook_runs = 3
    args.blocks, args.calls = (150 if args.quick else 400), 500
    return args


def main() -> int:
    args = arguments()
    # Started in the background, a process is told to ignore Ctrl-C; asked to stop, it prints too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    results = Results()
    with tempfile.TemporaryDirectory(prefix="capture-overhead-") as scratch:
        try:
            measure(Bench(Path(scratch), args.cold_kernels), args, results)
        except KeyboardInterrupt:
            results.interrupted = True
            print("Interrupted.", file=sys.stderr)
    print(as_json(results, args) if args.json else text(results, args))
    failed = any(row["verdict"] == "FAIL" for row in bars(results))
    return 1 if args.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
