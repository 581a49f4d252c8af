"""`compilescope bench`: models on backends, measured so that the figures can be trusted."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.apps.cli.options import (
    dir_option,
    home_folder,
    in_home,
    json_option,
    limit_option,
    print_json,
    python_option,
)
from compilescope.apps.cli.progress import CurrentWork, ended_in_order, working
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.measure.bench.measurement import BenchRun, BenchStep, Method, Stack
    from compilescope.measure.bench.protocol import MachineSurvey, Spec
    from compilescope.record.benchmark import Benchmark
    from compilescope.record.bodies import Body

GROUP = "Numbers"
_STOPPED = 130
"""As a shell has it for a program that Ctrl-C ended: 128 and the number of SIGINT."""


@click.command(
    "bench",
    short_help="Measure models on backends: latency with intervals, compile time, memory.",
    help="Measure models on backends of torch.compile and compare each with eager mode: compile "
    "time, latency with a 95 % confidence interval, throughput, peak memory, graph breaks, and "
    "whether the numbers agree.\n\n"
    "Each backend runs in its own processes, which take turns. Ctrl-C keeps what was measured.\n\n"
    "Exit status: 0 everything was measured, 1 a backend has no figures, 2 nothing could be "
    "measured, or an error.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="NAME",
    help="A model: its name, or file.py:build. Repeatable.",
)
@click.option("--all", "everything", is_flag=True, help="Measure all models.")
@click.option("--list", "listing", is_flag=True, help="List the models.")
@click.option(
    "--backend",
    "backends",
    multiple=True,
    metavar="NAME",
    help="A backend: its name, mock, or file.py:backend. Repeatable. Eager mode is always "
    "measured. [default: inductor]",
)
@click.option(
    "--mode",
    type=click.Choice(["inference", "training"]),
    default="inference",
    show_default=True,
    help="A forward call, or a training step.",
)
@click.option(
    "--warmup", type=click.IntRange(1), default=3, show_default=True, help="Calls before timing."
)
@click.option(
    "--runs", type=click.IntRange(1), default=10, show_default=True, help="Runs in each process."
)
@click.option(
    "--processes",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Processes per backend. Two processes of the same program differ; the interval covers "
    "that with three or more.",
)
@click.option(
    "--longer",
    type=click.FloatRange(0),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for more processes where figures are too noisy to tell; 0: only those planned.",
)
@click.option("--device", default="cpu", show_default=True, help="cpu or cuda.")
@click.option("--dtype", default="float32", show_default=True, help="float32, bfloat16 or float16.")
@click.option("--batch", type=click.IntRange(1), help="Batch size. [default: the model's own]")
@click.option("--small", is_flag=True, help="Measure the models' small versions.")
@click.option("--compile-mode", default="", metavar="MODE", help="Mode for torch.compile.")
@click.option(
    "--constraints",
    default="",
    metavar="DEVICE",
    help="Also count violations of this device's constraints: a name such as npu-a, or a file.",
)
@click.option(
    "--no-examine", is_flag=True, help="Measure only: skip graphs, graph breaks and KernelDiff."
)
@click.option(
    "--threads", type=click.IntRange(1), help="Threads that torch uses. [default: torch's own]"
)
@click.option("--seed", default=0, show_default=True, help="Seed for weights and inputs.")
@limit_option("one step (building, compiling, one run)", 600.0, old_name="--timeout")
@python_option
@dir_option
@json_option
def COMMAND(
    models: tuple[str, ...],
    everything: bool,
    listing: bool,
    backends: tuple[str, ...],
    as_json: bool,
    home: Path | None,
    **given: Any,
) -> int:
    if listing:
        from compilescope.apps.cli.commands.bench.output import print_models

        return print_models(as_json=as_json)
    _check_statistics()
    with ended_in_order(pausing=True), working("bench", "looking up models and backends") as work:
        session = _Session(_named(models, everything), backends or ("inductor",), given, home, work)
        status = session.measure()
    return _told(session, status, as_json, home)


def _named(models: tuple[str, ...], everything: bool) -> tuple[str, ...]:
    if everything:
        from compilescope.apps.cli.commands.bench.output import all_models

        models = (*(model.name for model in all_models()), *models)
    if not models:
        raise ToolError(
            "Name a model to measure.",
            hint="`compilescope bench --list` shows the models; --all measures all of them.",
        )
    return tuple(dict.fromkeys(models))


def _check_statistics() -> None:
    """Before hours of measuring, not after them."""
    from compilescope.knowledge.analysis.intervals import summarize

    summarize([[1.0, 1.0, 1.0]])


class _Session:
    """One benchmark from its first model to its last, or to Ctrl-C."""

    def __init__(
        self,
        models: tuple[str, ...],
        backends: tuple[str, ...],
        given: dict[str, Any],
        home: Path | None,
        work: CurrentWork,
    ) -> None:
        from compilescope.measure.bench.measurement import Method

        self.results: list[Benchmark] = []
        self._work = work
        self._method: Method = Method(
            processes=given["processes"],
            examine=not given["no_examine"],
            limit_s=given["limit"],
            longer_s=given["longer"],
        )
        self._plan = {model: _specs(model, backends, given) for model in models}
        self._surveyed = _survey(self._plan, self._method)
        self.machine = self._surveyed.machine
        label = models[0] if len(models) == 1 else f"{len(models)}-models"
        self.run = self._new_run(home_folder(home), Path(label).stem)

    def _new_run(self, home: Path, label: str) -> BenchRun:
        from compilescope.measure.bench.measurement import BenchRun

        words = sys.argv[sys.argv.index("bench") :] if "bench" in sys.argv else ["bench"]
        return BenchRun(home, label, tuple(words), self.machine)

    def measure(self) -> int:
        """The exit status."""
        status = 2
        try:
            for number, model in enumerate(self._plan, 1):
                self._measure_model(model, number)
            failed = any(result.error for result in self.results)
            measured = any(result.latency_ms is not None for result in self.results)
            status = (1 if failed else 0) if measured else 2
        except (KeyboardInterrupt, SystemExit) as stop:
            code = stop.code if isinstance(stop, SystemExit) else None
            status = code if isinstance(code, int) else _STOPPED
        finally:
            self.run.end(status)
        return status

    def _measure_model(self, model: str, number: int) -> None:
        from compilescope.measure.bench.measurement import ModelBench, Track, benchmark

        specs = self._plan[model]
        reason = self._surveyed.unavailable.get(model)
        if reason:
            self._keep([benchmark(Track(spec, 0, error=reason), None) for spec in specs[:1]])
            return

        def heard(step: BenchStep) -> None:
            place = f"{number}/{len(self._plan)} " if len(self._plan) > 1 else ""
            words = f"{place}{step.model} on {step.backend}: {step.doing}"
            self._work.show(words, min(step.done, step.total), step.total)

        with ModelBench(specs, self._method, heard) as bench:
            try:
                bench.measure()
            except (KeyboardInterrupt, SystemExit):
                found = bench.benchmarks(stopped=True)
                if any(result.latency_ms is not None for result in found):
                    self._keep(found, bench.bodies())
                raise
            self._keep(bench.benchmarks(), bench.bodies())

    def _keep(self, results: list[Benchmark], more: Iterable[tuple[Body, Stack]] = ()) -> None:
        for result in results:
            self.run.write(result)
        for body, stack in more:
            self.run.write(body, stack)
        self.results += results


def _specs(model: str, backends: tuple[str, ...], given: dict[str, Any]) -> list[Spec]:
    """Eager mode first, asked for or not."""
    from compilescope.measure.bench.protocol import EAGER, Spec

    names = "mode device dtype batch small constraints warmup runs seed threads"
    shared = {name: given[name] for name in names.split()}
    return [
        Spec(
            model=model,
            backend=backend,
            # The other backends have no modes, and torch hands them whatever it is given.
            compile_mode=given["compile_mode"] if backend == "inductor" else "",
            **shared,
        )
        for backend in dict.fromkeys((EAGER, *backends))
    ]


def _survey(plan: dict[str, list[Spec]], method: Method) -> MachineSurvey:
    """By a process of its own: this one never imports torch, nor a user's file."""
    import tempfile

    from compilescope.measure.bench.protocol import MachineSurvey
    from compilescope.measure.bench.worker_process import WorkerFailed, WorkerProcess

    every = [spec for specs in plan.values() for spec in specs]
    with tempfile.TemporaryDirectory(prefix="compilescope-bench-") as folder:
        place = Path(folder)
        with WorkerProcess(place / "caches", place / "log", method.limit_s) as worker:
            try:
                return worker.ask("survey", MachineSurvey, *every)
            except WorkerFailed as failure:
                raise ToolError(failure.sentence, hint=failure.hint) from None


def _told(session: _Session, status: int, as_json: bool, home: Path | None) -> int:
    folder = session.run.folder
    if status == 2:
        reason = next((result.error for result in session.results if result.error), "")
        print(f"compilescope: error: nothing was measured: {reason}", file=sys.stderr)
    if as_json:
        from compilescope.apps.cli.commands.bench.output import bench_json

        print_json(bench_json(folder.name, session.machine, session.results))
        return status
    from compilescope.apps.cli.output import tell
    from compilescope.record.run import read_run
    from compilescope.report.benchmarks import benchmarks_document
    from compilescope.report.section import Reading

    if session.results:
        rest = shlex.join(["compilescope", "show", "--all", *in_home(home), folder.name])
        tell(benchmarks_document(Reading(read_run(folder))), rest)
    if status >= _STOPPED - 2:
        kept = "; what was measured is kept" if session.results else ""
        print(f"compilescope: stopped{kept}", file=sys.stderr)
    command = shlex.join(["compilescope", "report", *in_home(home), folder.name])
    print(f"\ncompilescope: see the report with `{command}`", file=sys.stderr)
    return status
