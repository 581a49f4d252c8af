"""Timed captures of real programs, by a clock that stands still unless they let time pass."""

from __future__ import annotations

import functools
import json
import sys
import textwrap
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

import compilescope  # noqa: E402
from compilescope.instrument.torchapi import install  # noqa: E402
from compilescope.instrument.torchapi.times.region_times import Timing  # noqa: E402
from compilescope.knowledge.analysis.cost import coverage, lost_by_site, region_costs  # noqa: E402
from compilescope.knowledge.findings.breaks import break_sites  # noqa: E402
from compilescope.record.bodies import GraphTime, RegionTime  # noqa: E402
from compilescope.record.home import list_runs  # noqa: E402
from compilescope.record.run import Run, read_run  # noqa: E402
from recorder.faults import finding_faults  # noqa: E402
from recorder.harness import (  # noqa: E402
    assert_transparent,
    captured_command,
    finish,
    start,
)

CALLS = 4
STEADY = CALLS - 1
"""The first one compiles."""
GRAPH_MS, NAP_MS = 10, 30


class Clock:
    """In nanoseconds, as the one that it stands for."""

    now = 0

    def __call__(self) -> int:
        return self.now


CLOCK = Clock()


@torch.compiler.disable
def nap(ms: int) -> None:
    """Time that passes where Dynamo has to break."""
    CLOCK.now += ms * 10**6


def backend(graph: Any, inputs: Any) -> Any:
    """Each graph takes the same time."""

    def run(*args: Any) -> Any:
        CLOCK.now += GRAPH_MS * 10**6
        return graph(*args)

    return run


@pytest.fixture(autouse=True)
def fresh_dynamo(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(install, "Timing", functools.partial(Timing, now=CLOCK))
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def lost_by_line(run: Run) -> dict[str, float]:
    """Source line -> milliseconds."""
    sites = break_sites(run)
    lost = lost_by_site(run, sites)
    return {s.source.strip(): lost[s.fingerprint] for s in sites if s.fingerprint in lost}


def timed(function: Any, *args: Any, calls: int = CALLS) -> Run:
    with compilescope.capture(time=True) as seen:
        for _ in range(calls):
            function(*args)
    assert not seen.digest.faults
    return seen.run


def whole(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ x)


def one_nap(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    nap(NAP_MS)  # a nap
    return y * 2


def two_naps(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    nap(NAP_MS)  # short
    y = y * 2
    nap(3 * NAP_MS)  # long
    return y - 1


def nap_in_a_loop(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = x + 1
        nap(NAP_MS)  # in a loop
    return x


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return one_nap(x) + 1


def test_one_clean_graph_is_covered() -> None:
    run = timed(torch.compile(whole, backend=backend), torch.ones(3, 3))
    assert coverage(run) == 100
    [cost] = region_costs(run)
    assert (cost.function, cost.calls, cost.warmup_calls) == ("whole", STEADY, 1)
    assert cost.total_ms == cost.inside_ms == STEADY * GRAPH_MS
    [(event, body)] = run.of(GraphTime)
    assert (body.calls, body.inside_ns) == (STEADY, STEADY * GRAPH_MS * 10**6)
    assert event.compile_id == body.graph == "0/0"
    assert body.frame is not None and body.frame.function == "whole"


def test_a_nap_between_graphs_is_lost_time() -> None:
    run = timed(torch.compile(one_nap, backend=backend), torch.ones(3))
    # Two graphs and a nap.
    assert coverage(run) == 100 * 2 * GRAPH_MS / (2 * GRAPH_MS + NAP_MS)
    assert lost_by_line(run) == {"nap(NAP_MS)  # a nap": STEADY * NAP_MS}


def test_each_nap_is_charged_to_its_own_line() -> None:
    assert lost_by_line(timed(torch.compile(two_naps, backend=backend), torch.ones(3))) == {
        "nap(NAP_MS)  # short": STEADY * NAP_MS,
        "nap(3 * NAP_MS)  # long": STEADY * 3 * NAP_MS,
    }


def test_a_break_in_a_callee_of_a_module() -> None:
    run = timed(torch.compile(Model(), backend=backend), torch.ones(3))
    [cost] = region_costs(run)
    assert cost.function == "forward" and cost.calls == STEADY
    assert lost_by_line(run) == {"nap(NAP_MS)  # a nap": STEADY * NAP_MS}


def test_a_frame_that_went_eager_is_charged_to_its_break() -> None:
    run = timed(torch.compile(nap_in_a_loop, backend=backend), torch.ones(3))
    assert coverage(run) == 0
    assert lost_by_line(run) == {"nap(NAP_MS)  # in a loop": STEADY * 2 * NAP_MS}


def test_what_compiles_is_warm_up() -> None:
    compiled = torch.compile(lambda x: x + 1, backend=backend, dynamic=False)
    with compilescope.capture(time=True) as seen:
        for size in (2, 2, 3, 3, 3, 2):
            compiled(torch.ones(size))
    [cost] = region_costs(seen.run)
    assert (cost.calls, cost.warmup_calls) == (4, 2)


def test_only_the_outermost_entry_is_a_region() -> None:
    inner = torch._dynamo.disable(torch.compile(one_nap, backend=backend))

    def outer(x: torch.Tensor) -> torch.Tensor:
        y = x * 3
        torch._dynamo.graph_break()
        return inner(y)

    run = timed(torch.compile(outer, backend=backend), torch.ones(3))
    assert [cost.function for cost in region_costs(run)] == ["outer"]
    assert sum(lost_by_line(run).values()) == STEADY * NAP_MS


def test_threads_are_timed_apart() -> None:
    compiled = torch.compile(one_nap, backend="eager")
    x = torch.ones(3)
    with compilescope.capture(time=True) as seen:
        compiled(x)
        work = lambda: [compiled(x) for _ in range(CALLS)]  # noqa: E731
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    [cost] = region_costs(seen.run)
    assert cost.calls + cost.warmup_calls == 2 * CALLS + 1


def test_a_compiled_function_within_an_eager_loop() -> None:
    step = torch.compile(lambda x: x + 1, backend=backend)

    def loop(x: torch.Tensor) -> torch.Tensor:
        for _ in range(5):
            x = step(x)
            nap(NAP_MS)
        return x

    run = timed(torch.compile(loop, backend=backend), torch.ones(3))
    [cost] = region_costs(run)
    assert (cost.function, cost.calls, cost.warmup_calls) == ("loop", STEADY, 1)
    assert cost.coverage == 100 * GRAPH_MS / (GRAPH_MS + NAP_MS)


def failing_backend(graph: Any, inputs: Any) -> Any:
    def run(*args: Any) -> Any:
        CLOCK.now += GRAPH_MS * 10**6
        raise ValueError("from the graph")

    return run


def test_a_traceback_does_not_show_the_clock() -> None:
    compiled = torch.compile(lambda x: x + 1, backend=failing_backend)

    def trace() -> str:
        try:
            compiled(torch.ones(3))
        except ValueError:
            return traceback.format_exc()
        raise AssertionError("nothing was raised")

    plain = trace()
    torch._dynamo.reset()
    with compilescope.capture(time=True) as seen:
        first, second = trace(), trace()
    if sys.version_info >= (3, 11):
        assert first == second == plain
    [cost] = region_costs(seen.run)
    assert (cost.calls, cost.warmup_calls) == (1, 1)


def test_fullgraph_allows_the_clock(monkeypatch: Any) -> None:
    name = "error_on_dynamo_callback_in_fullgraph_compiled_code"
    if not hasattr(torch._dynamo.config, name):
        pytest.skip("this torch has no such check")
    with torch._dynamo.config.patch({name: True}):
        run = timed(torch.compile(lambda x: x + 1, backend=backend, fullgraph=True), torch.ones(3))
    assert region_costs(run)[0].calls == STEADY


def test_nothing_is_left_behind() -> None:
    before = torch.compile(one_nap, backend="eager")
    with compilescope.capture(time=True):
        during = torch.compile(two_naps, backend="eager")
        before(torch.ones(3))
        during(torch.ones(3))
    for value in list(globals().values()):
        assert not hasattr(value, "_compilescope_home")
    for compiled in (before, during):
        for cell in compiled.__closure__ or ():
            for hook in getattr(cell.cell_contents, "enter_exit_hooks", ()):
                assert "compilescope" not in hook.__module__
    with compilescope.capture(time=True) as seen:
        before(torch.ones(3))
    assert [cost.calls for cost in region_costs(seen.run)] == [1]


def test_untimed_captures_have_no_clock() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    with compilescope.capture() as seen:
        compiled(torch.ones(3))
        compiled(torch.ones(3))
    assert not list(seen.run.of(RegionTime)) and not list(seen.run.of(GraphTime))
    assert coverage(seen.run) is None


@pytest.mark.parametrize("hook", ["timed-regions", "timed-graphs", "compile-starts"])
def test_a_fault_in_a_clock_harms_nothing(hook: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(install, "discover", finding_faults(hook))
    with compilescope.capture(time=True) as seen:
        compiled = torch.compile(one_nap, backend="eager")
        results = [compiled(torch.ones(2)).tolist() for _ in range(2)]
    assert results == [[4.0, 4.0]] * 2
    assert {fault.where for fault in seen.digest.faults} == {hook}
    assert coverage(seen.run) is None


PROGRAM = """
    import os, pathlib, sys, time, torch
    def f(x):
        y = x + 1
        time.sleep(0.02)
        return y * 2
    g = torch.compile(f, backend="eager")
    x = torch.ones(3)
    for _ in range(4):
        g(x)
    if "fork" in sys.argv:
        pid = os.fork()
        g(x); g(x)
        if pid:
            os.waitpid(pid, 0)
    if "kill" in sys.argv:
        # Times are written while it runs, however slowly: it leaves once they were, twice.
        runs = pathlib.Path(__file__).with_name("runs")
        while sum(file.read_text().count('"RegionTime"') for file in runs.rglob("*.jsonl")) < 2:
            g(x)
        os._exit(0)
"""


def run_program(tmp_path: Path, *words: str) -> tuple[Run, dict[str, Any]]:
    import subprocess

    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))
    command = [sys.executable, "-W", "ignore", "-m", "compilescope", "run", "--time", "--json"]
    done = subprocess.run(
        [*command, "--dir", str(tmp_path / "runs"), str(script), *words],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    run = read_run(list_runs(tmp_path / "runs")[0][0][0])
    return run, json.loads(done.stdout.splitlines()[-1])


def test_a_timed_program(tmp_path: Path) -> None:
    run, seen = run_program(tmp_path)
    assert seen["tool_faults"] == 0
    [cost] = region_costs(run)
    assert (cost.calls, cost.warmup_calls, cost.function) == (3, 1, "f")
    # By the real clock: however busy the machine is, nobody sleeps less than that.
    assert sum(lost_by_line(run).values()) >= 3 * 20 * 0.9
    assert not seen["cut_short"]


@pytest.mark.slow
def test_a_forked_child_counts_its_own_calls(tmp_path: Path) -> None:
    run, _ = run_program(tmp_path, "fork")
    calls: dict[int, int] = {}
    for event, body in run.of(RegionTime):
        calls[event.pid] = calls.get(event.pid, 0) + body.calls
    assert sorted(calls.values()) == [2, 5]


@pytest.mark.slow
def test_a_program_that_leaves_abruptly_loses_little(tmp_path: Path) -> None:
    run, _ = run_program(tmp_path, "kill")
    [cost] = region_costs(run)
    assert len(list(run.of(RegionTime))) >= 2 and cost.calls >= 2


@pytest.mark.slow
@pytest.mark.parametrize("program", ["passing_hooks.py", "steady.py"])
def test_a_program_does_not_notice_the_clock(program: str, tmp_path: Path) -> None:
    plain = start([sys.executable, program])
    captured = start(captured_command(tmp_path, "--time", "-q", program))
    assert_transparent(finish(plain), finish(captured))
