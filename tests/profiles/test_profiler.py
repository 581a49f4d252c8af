"""Steps of real programs, on the CPU: found, recorded, and the program left alone."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

import compilescope  # noqa: E402
from compilescope.instrument.torchapi import install  # noqa: E402
from compilescope.knowledge.profiles.calls import StepPlaces, read_places  # noqa: E402
from compilescope.knowledge.profiles.kernel_rows import kernel_rows  # noqa: E402
from compilescope.knowledge.profiles.step import bar_of  # noqa: E402
from compilescope.knowledge.profiles.step_profile import StepProfile, profiles_of  # noqa: E402
from compilescope.knowledge.profiles.trace import (  # noqa: E402
    STEP,
    compact,
    read_stored,
)
from compilescope.record.home import list_runs  # noqa: E402
from compilescope.record.run import Run, read_run  # noqa: E402
from recorder.faults import finding_faults  # noqa: E402

PROGRAM = """
import sys
import torch

torch.manual_seed(0)
net = torch.nn.Linear(64, 64)
model = torch.compile(net, backend="aot_eager")
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(int(sys.argv[1])):
    loss = model(torch.ones(4, 64)).pow(2).mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
print(f"{loss.item():.6f}")
"""


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _only(run: Run) -> StepProfile:
    (profile,) = profiles_of(run)
    return profile


def _run(folder: Path, calls: int, *options: str) -> tuple[subprocess.CompletedProcess[str], Run]:
    program = folder / "train.py"
    program.write_text(textwrap.dedent(PROGRAM))
    command = [sys.executable, "-m", "compilescope", "run", "--dir", "runs", *options]
    done = subprocess.run(
        [*command, str(program), str(calls)], cwd=folder, capture_output=True, text=True
    )
    ((found, _),), _ = list_runs(folder / "runs")
    return done, read_run(found)


def test_a_training_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done, run = _run(tmp_path, 20, "--profile", "--steps", "3")
    # What it computes without us: in this process, because another one takes seconds to start.
    monkeypatch.setattr(sys, "argv", ["train.py", "20"])
    with torch.random.fork_rng():
        exec(PROGRAM, {})
    assert done.returncode == 0 and done.stdout == capsys.readouterr().out
    assert "USDT" not in done.stderr and "A step" in done.stderr
    bar = _only(run).bar
    assert bar is not None and bar.steps == 3
    assert sum(part.us for part in bar.parts) == pytest.approx(bar.step_us, rel=0.02)
    parts = {part.part for part in bar.parts}
    assert {"guards", "wrapper", "operator", "optimizer"} <= parts
    told = _only(run).told
    assert len(told.step_ns) == 3 and told.device == "" and not told.reason


@pytest.mark.slow
def test_too_few_steps(tmp_path: Path) -> None:
    done, run = _run(tmp_path, 6, "--profile")
    assert done.returncode == 0
    assert _only(run).bar is None
    assert "There is no profile: the program ended after" in " ".join(done.stderr.split())


def test_steps_without_profile(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "compilescope", "run", "--steps", "3", "x.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "--steps needs --profile" in done.stderr


def test_in_python() -> None:
    @torch.compile(backend="eager")
    def f(x: Any) -> Any:
        return (x @ x).relu().sum()

    with compilescope.capture(profile=2) as seen:
        for _ in range(12):
            f(torch.ones(8, 8))
    profile = _only(seen.run)
    assert profile.bar is not None and profile.bar.steps == 2
    assert profile.told.region is not None and profile.told.region.function == "f"
    assert not seen.digest.faults


def test_calls_after_the_profiled_ones_are_let_alone() -> None:
    from compilescope.instrument.torchapi.times.step_profiler import StepProfiler, existing_regions

    @torch.compile(backend="eager")
    def f(x: Any) -> Any:
        return x.relu().sum()

    def watched() -> list[Any]:
        hooks = [hook for region in existing_regions() for hook in region.enter_exit_hooks]
        return [hook for hook in hooks if hook.__module__ == StepProfiler.__module__]

    with compilescope.capture(profile=2) as seen:
        f(torch.ones(8))
        assert watched()
        for _ in range(30):
            f(torch.ones(8))
        assert not watched()
        g = torch.compile(lambda x: x + 1, backend="eager")
        g(torch.ones(8))
        assert not watched()
    assert _only(seen.run).bar is not None


def test_python_of_another_thread_is_no_cause() -> None:
    @torch.compile(backend="eager")
    def f(x: Any) -> Any:
        return x.relu().sum()

    over = threading.Event()

    def beside() -> None:
        while not over.wait(0.001):
            pass

    thread = threading.Thread(target=beside)
    thread.start()
    try:
        with compilescope.capture(profile=2) as seen:
            for _ in range(12):
                f(torch.ones(8))
                time.sleep(0.005)  # In which the other thread has its turns.
    finally:
        over.set()
        thread.join()
    profile = _only(seen.run)
    lines = read_places(seen.run.artifacts.get(profile.told.places)).lines
    named = {line.at.function for line in lines} | {line.calls for line in lines}
    # How much it takes of a step does not matter here: a sleep is long enough to be told.
    assert "sleep" in named and not {"beside", "wait"} & named


def test_what_torch_does_around_compiled_code_is_no_python_of_the_line() -> None:
    """Kernels of Triton are no operators: the call of compiled code seemed to be Python alone."""

    @torch.compile(backend=lambda graph, inputs: lambda *given: (given[0],))
    def f(x: Any) -> Any:
        return x.relu()

    with compilescope.capture(profile=2) as seen:
        for _ in range(12):
            f(torch.ones(8))
            time.sleep(0.005)
    lines = read_places(seen.run.artifacts.get(_only(seen.run).told.places)).lines
    own = {Path(line.at.file).name for line in lines}
    assert "sleep" in {line.calls for line in lines} and own == {Path(__file__).name}
    assert not {"__call__", "compile_wrapper", "inner", "_fn"} & {line.calls for line in lines}


def test_what_compiles_later_begins_it_anew() -> None:
    @torch.compile(backend="eager", dynamic=False)
    def f(x: Any) -> Any:
        return x.relu().sum()

    with compilescope.capture(profile=2) as seen:
        for size in [4] * 6 + [5] * 12:
            f(torch.ones(size))
    profile = _only(seen.run)
    assert profile.bar is not None
    recorded = profile.told
    assert recorded.steps == 2 and not seen.digest.faults


@pytest.mark.parametrize("training", [14, 6])
def test_a_loop_that_evaluates_is_no_part_of_the_step(training: int) -> None:
    """Both call the same region, and an epoch may end while steps are recorded."""
    model = torch.compile(torch.nn.Linear(8, 8), backend="eager")
    x = torch.ones(4, 8)

    def train() -> None:
        for _ in range(training):
            model(x).sum().backward()
            time.sleep(0.01)

    def evaluate() -> None:
        with torch.no_grad():
            for _ in range(5):
                model(x).argmax()

    with compilescope.capture(profile=2) as seen:
        evaluate()
        for _ in range(4):
            train()
            evaluate()
    profile = _only(seen.run)
    assert profile.bar is not None and profile.bar.steps == 2 and not seen.digest.faults
    places = read_places(seen.run.artifacts.get(profile.told.places))
    assert "aten::argmax" not in {call.name for call in places.calls}
    assert {line.at.function for line in places.lines} == {"train"}


def test_a_loop_that_warms_up_is_not_the_step() -> None:
    @torch.compile(backend="eager")
    def f(x: Any) -> Any:
        return x.relu()

    def warm_up() -> None:
        for _ in range(6):
            f(torch.ones(4)).sigmoid()

    def work() -> None:
        for _ in range(300):
            f(torch.ones(4)).exp()
            time.sleep(0.001)

    with compilescope.capture(profile=2) as seen:
        warm_up()
        work()
    profile = _only(seen.run)
    assert profile.bar is not None and not seen.digest.faults
    places = read_places(seen.run.artifacts.get(profile.told.places))
    names = {call.name for call in places.calls}
    assert "aten::exp" in names and "aten::sigmoid" not in names


@pytest.mark.parametrize("hook", ["profiled-regions", "compile-starts"])
def test_a_fault_in_a_hook_harms_nothing(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @torch.compile(backend="eager")
    def f(x: Any) -> Any:
        return x + 1

    monkeypatch.setattr(install, "discover", finding_faults(hook))
    with compilescope.capture(profile=1) as seen:

        @torch.compile(backend="eager")
        def g(x: Any) -> Any:
            return x * 2

        assert f(torch.ones(2)).sum() == g(torch.ones(2)).sum() == 4
    assert {fault.where for fault in seen.digest.faults} == {hook}


@pytest.mark.slow
@pytest.mark.parametrize("hook", ["refused-fusions", "fused-nodes"])
def test_a_fault_while_inductor_fuses_harms_nothing(
    hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "discover", finding_faults(hook))
    with (
        torch._inductor.config.patch(force_disable_caches=True),
        compilescope.capture(profile=1) as seen,
    ):
        both = torch.compile(lambda x: (x.sin().sum(0), x.exp().sum(1)))
        assert both(torch.zeros(64, 32))[1][0] == 32
    assert {fault.where for fault in seen.digest.faults} == {hook}


@pytest.mark.parametrize("before", [0, 9, 11], ids=["first", "while we begin", "while we record"])
def test_a_program_that_profiles_itself(before: int) -> None:
    @torch.compile(backend="eager")
    def f(x: Any) -> Any:
        return (x @ x).relu()

    def own_profile() -> list[str]:
        torch._dynamo.reset()
        own = torch.profiler.profile()
        for step in range(before + 20):
            if step == before:
                own.start()
            f(torch.ones(8, 8))
        own.stop()
        return [event.name for event in own.events()]

    # Compiling runs it on fake tensors too, the first time more often: how often is torch's affair.
    own_profile()
    alone = own_profile()
    with compilescope.capture(profile=5) as seen:
        names = own_profile()
    assert names.count("aten::mm") == alone.count("aten::mm") >= 20
    assert not any("compilescope" in name for name in names)
    profile = _only(seen.run)
    assert profile.bar is None and "uses torch's profiler itself" in profile.told.reason
    assert not seen.digest.faults


def test_a_program_that_always_compiles() -> None:
    @torch.compile(backend="eager", dynamic=False)
    def f(x: Any) -> Any:
        return x.relu()

    with compilescope.capture(profile=3) as seen:
        for size in range(2, 7):
            for _ in range(6):
                f(torch.ones(size))
    assert "something compiled in each of" in _only(seen.run).told.reason


def test_times_are_those_of_the_profilers_own_table(tmp_path: Path) -> None:
    x = torch.ones(200, 200)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for number in range(4):
            with torch.profiler.record_function(f"{STEP}#{number}"):
                torch.mm(torch.tanh(x), x)
                torch.mm(x, x)
    file = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(file))
    trace = read_stored(compact(file, first=0))
    rows = kernel_rows(trace, StepPlaces())
    table = {row.key: row for row in profiler.key_averages()}
    for name, calls in (("aten::mm", 2), ("aten::tanh", 1)):
        own = [row for row in rows if row.name == name]
        assert sum(row.calls for row in own) == calls
        # Kineto writes thousandths of a microsecond.
        whole = sum(row.us for row in own) * 4
        assert whole == pytest.approx(table[name].cpu_time_total, abs=0.01)
    bar = bar_of(trace)
    assert bar is not None
    assert sum(part.us for part in bar.parts) == pytest.approx(bar.step_us, rel=0.02)


def test_what_inductor_did_not_fuse() -> None:
    def both(x: Any) -> Any:
        rows = x.sin().sum(0)
        return rows, x.exp().sum(1)

    with (
        torch._inductor.config.patch(force_disable_caches=True),
        compilescope.capture(profile=2) as seen,
    ):
        model = torch.compile(both)
        for _ in range(14):
            model(torch.ones(64, 32))
    assert not seen.digest.faults
    pairs = _only(seen.run).unfused
    assert pairs and {pair.first for pair in pairs} == {"sin, sum"}
    assert all(pair.reason for pair in pairs)
    (at,) = {pair.at for pair in pairs}
    first = both.__code__.co_firstlineno
    assert at is not None and (Path(at.file).name, at.line) == (Path(__file__).name, first + 1)


def test_what_was_recorded_is_freed_at_once() -> None:
    """Left to the garbage collector it lived until the process ended, and crashed it."""
    import gc

    model = torch.compile(torch.nn.Linear(4, 4), backend="eager")
    gc.disable()
    try:
        with compilescope.capture(profile=2) as seen:
            for _ in range(16):
                model(torch.ones(2, 4))
        assert _only(seen.run).bar is not None
        kind = torch.autograd.profiler.profile
        profilers = [each for each in gc.get_objects() if type(each) is kind]
        assert all(each.kineto_results is None for each in profilers)
    finally:
        gc.enable()
