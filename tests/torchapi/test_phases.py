"""The phases that torch times: whole, nested, by thread, and harmless whatever torch does."""

from __future__ import annotations

import dataclasses
import os
import textwrap
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

from torch._dynamo.utils import (  # noqa: E402
    dynamo_timed,
    get_chromium_event_logger,
)

import compilescope  # noqa: E402
from compilescope.instrument.torchapi.hooks import phases  # noqa: E402
from compilescope.instrument.torchapi.times.phases import PhaseLog  # noqa: E402
from compilescope.record.bodies import CompilePhases, CompileTime, Phase  # noqa: E402
from compilescope.record.event import Event  # noqa: E402
from compilescope.record.home import list_runs  # noqa: E402
from compilescope.record.run import Run, read_run  # noqa: E402
from recorder.harness import captured_command, finish, start  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def captured(function: Any) -> Run:
    with compilescope.capture() as seen:
        function()
    assert not seen.digest.faults
    return seen.run


def phases_of(run: Run) -> list[tuple[Event, CompilePhases]]:
    return list(run.of(CompilePhases))


def names(run: Run) -> list[str]:
    return [phase.name for _, body in phases_of(run) for phase in body.phases]


def assert_nested(phases: Sequence[Phase]) -> None:
    path: list[Phase] = []
    for phase in phases:
        del path[phase.depth :]
        assert len(path) == phase.depth
        if path:
            outer = path[-1]
            assert outer.start_ns <= phase.start_ns
            assert phase.start_ns + phase.duration_ns <= outer.start_ns + outer.duration_ns
        path.append(phase)


def breaks(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


def test_one_event_a_compilation() -> None:
    run = captured(lambda: torch.compile(breaks, backend="aot_eager")(torch.ones(2)))
    found = phases_of(run)
    assert [event.compile_id for event, _ in found] == ["0/0", "1/0"]
    assert len(found) == run.count(CompileTime)
    for event, body in found:
        assert_nested(body.phases)
        assert body.phases[0].depth == 0
        assert body.thread is None
        assert all(phase.ended and phase.compile_id is None for phase in body.phases)
        assert body.phases[0].start_ns <= event.time_ns
    first = [phase.name for phase in found[0][1].phases]
    assert {"compile_attempt_0", "compile_attempt_1", "bytecode_tracing"} <= set(first)


def test_the_time_of_a_compilation_lies_in_its_phases() -> None:
    run = captured(lambda: torch.compile(breaks, backend="eager")(torch.ones(2)))
    told = {event.compile_id.split("_")[0]: event for event, _ in run.of(CompileTime)}
    for event, body in phases_of(run):
        outer = body.phases[0]
        end = outer.start_ns + outer.duration_ns
        assert outer.start_ns <= told[event.compile_id].time_ns <= end


def test_backward_in_another_thread() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        return (x * x).sum()

    def train() -> None:
        x = torch.ones(3, requires_grad=True)
        loss = torch.compile(step, backend="aot_eager")(x)
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()

    run = captured(train)
    threads = {event.thread for event, _ in phases_of(run)}
    assert len(threads) == 2
    backward = [b for e, b in phases_of(run) if e.thread != threading.get_ident()]
    assert "entire_backward_compile" in [phase.name for phase in backward[0].phases]


def test_a_phase_that_fails_still_ends() -> None:
    def broken(module: Any, inputs: Any) -> Any:
        raise ValueError("no such chip")

    def run_both() -> None:
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
            torch.compile(lambda x: x + 1, backend=broken)(torch.ones(2))
        torch.compile(lambda x: x - 1, backend="eager")(torch.ones(2))

    run = captured(run_both)
    assert len(phases_of(run)) == 2
    for _, body in phases_of(run):
        assert_nested(body.phases)
        assert all(phase.ended for phase in body.phases)


def test_begin_without_end_and_end_without_begin() -> None:
    log = get_chromium_event_logger()

    def unbalanced() -> None:
        log.log_event_end("never begun", time.time_ns(), {}, time.time_ns(), False)
        log.log_event_start("never ended", time.time_ns(), {})
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))

    try:
        run = captured(unbalanced)
    finally:
        log.reset()
    found = {phase.name: phase for _, body in phases_of(run) for phase in body.phases}
    assert "never begun" not in found
    assert not found["never ended"].ended
    assert found["dynamo"].ended
    inner, outer = found["dynamo"], found["never ended"]
    assert inner.start_ns + inner.duration_ns <= outer.start_ns + outer.duration_ns


def test_an_end_closes_what_an_error_left_open_in_it() -> None:
    log = get_chromium_event_logger()

    def unbalanced() -> None:
        with dynamo_timed("outside"):
            log.log_event_start("left open", time.time_ns(), {})

    run = captured(unbalanced)
    outside, left_open = phases_of(run)[0][1].phases
    assert (outside.name, outside.ended) == ("outside", True)
    assert (left_open.name, left_open.ended, left_open.depth) == ("left open", False, 1)


def test_phases_outside_any_compilation_wait_for_the_next_one() -> None:
    done = threading.Event()
    go_on = threading.Event()

    def helper() -> None:
        with dynamo_timed("in a helper thread"):
            pass
        done.set()
        go_on.wait()

    def both() -> None:
        thread = threading.Thread(target=helper)
        thread.start()
        done.wait()
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
        ident = thread.ident
        go_on.set()
        thread.join()
        idents.append(ident)

    idents: list[int | None] = []
    run = captured(both)
    loose = [body for event, body in phases_of(run) if event.compile_id is None]
    assert [phase.name for phase in loose[0].phases] == ["in a helper thread"]
    assert loose[0].thread == idents[0] != threading.get_ident()


def test_phases_outside_any_compilation_are_written_at_the_end() -> None:
    def loose() -> None:
        for name in ("one", "two"):
            with dynamo_timed(name):
                pass

    run = captured(loose)
    assert [[phase.name for phase in body.phases] for _, body in phases_of(run)] == [["one", "two"]]


def test_a_thread_that_is_still_at_it_at_the_end() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def endless() -> None:
        with dynamo_timed("endless"):
            begun.set()
            go_on.wait()

    seen: list[int] = []

    def start_it() -> None:
        thread.start()
        begun.wait()
        seen.append(time.time_ns())

    thread = threading.Thread(target=endless)
    try:
        run = captured(start_it)
    finally:
        go_on.set()
        thread.join()
    (phase,) = phases_of(run)[0][1].phases
    assert not phase.ended
    # Up to the end of the capture, not to the last word of its thread.
    assert phase.start_ns + phase.duration_ns >= seen[0]


def test_a_compilation_within_a_compilation() -> None:
    def compiling(module: Any, inputs: Any) -> Any:
        torch.compile(lambda x: x * 3, backend="eager")(torch.ones(2))
        return module.forward

    run = captured(lambda: torch.compile(lambda x: x + 1, backend=compiling)(torch.ones(2)))
    ((event, body),) = phases_of(run)
    assert event.compile_id == "0/0"
    assert_nested(body.phases)
    inner = [phase for phase in body.phases if phase.compile_id == "1/0"]
    assert "bytecode_tracing" in [phase.name for phase in inner]
    assert min(phase.depth for phase in inner) > 0


def test_a_reset_begins_a_new_epoch() -> None:
    def twice() -> None:
        torch.compile(breaks, backend="eager")(torch.ones(2))
        torch._dynamo.reset()
        torch.compile(breaks, backend="eager")(torch.ones(2))

    found = [(event.epoch, event.compile_id) for event, _ in phases_of(captured(twice))]
    assert found == [(0, "0/0"), (0, "1/0"), (1, "0/0"), (1, "1/0")]


class Sink:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.bodies: list[CompilePhases] = []
        self.faults: list[BaseException] = []

    def emit(self, body: Any, stack: Any = (), compile_id: str | None = None) -> str:
        self.bodies.append(body)
        return ""

    def fault(self, where: str, error: BaseException) -> None:
        self.faults.append(error)


def test_what_never_ends_does_not_grow_for_ever() -> None:
    sink = Sink()
    log = PhaseLog(sink)  # type: ignore[arg-type]
    log.begin("never ended", 0, "0/0")
    for number in range(2500):
        log.begin("short", number, "0/0")
        log.end("short", number + 1, {})
    assert len(sink.bodies) >= 2
    log.close()
    written = [phase for body in sink.bodies for phase in body.phases]
    assert len(written) == 2501
    assert sink.faults == []


def test_many_threads_lose_nothing() -> None:
    sink = Sink()
    log = PhaseLog(sink)  # type: ignore[arg-type]

    def work(number: int) -> None:
        for turn in range(200):
            log.begin(f"{number}", turn, f"{number}/{turn}")
            log.begin("inner", turn, f"{number}/{turn}")
            log.end("inner", turn + 1, {"cache_state": "hit"})
            log.end(f"{number}", turn + 1, {})

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    written = [phase for body in sink.bodies for phase in body.phases]
    assert len(written) == 6 * 200 * 2
    assert {phase.detail for phase in written} == {"", "cache hit"}
    assert sink.faults == []


def run_program(tmp_path: Path, text: str) -> Run:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(text))
    ended = finish(start(captured_command(tmp_path / "runs", "-q", str(program))))
    assert ended.status == 0, ended.stderr.decode()
    return read_run(list_runs(tmp_path / "runs")[0][0][0])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_children_write_their_own_phases_only(tmp_path: Path) -> None:
    run = run_program(
        tmp_path,
        """
        import os
        import torch
        from torch._dynamo.utils import dynamo_timed

        def call(f, size):
            torch.compile(f, backend="eager")(torch.ones(size))

        with dynamo_timed("around the fork"):
            child = os.fork()
            if child == 0:
                with dynamo_timed("idle child"):
                    pass
                os._exit(0)
            os.waitpid(child, 0)
        call(lambda x: x + 1, 2)
        child = os.fork()
        if child == 0:
            call(lambda x: x - 1, 3)
            os._exit(0)
        os.waitpid(child, 0)
        """,
    )
    by_pid: dict[int, list[str]] = {}
    for event, body in phases_of(run):
        by_pid.setdefault(event.pid, []).extend(phase.name for phase in body.phases)
    assert len(by_pid) == 2
    parent = by_pid[run.header.main_pid or 0]
    assert parent.count("around the fork") == 1
    (child,) = (found for pid, found in by_pid.items() if pid != run.header.main_pid)
    assert "around the fork" not in child
    assert child.count("dynamo") == 1
    assert "idle child" not in names(run)


@pytest.mark.slow
def test_what_inductors_caches_answered(cxx: None, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import torch\ntorch.compile(lambda x: x.sin() + 1)(torch.ones(8))\n")
    env = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        command = captured_command(tmp_path / "runs", "-q", str(program))
        assert finish(start(command, env=env)).status == 0
    warm, cold = (read_run(folder) for folder, _ in list_runs(tmp_path / "runs")[0])
    for run, answer in ((cold, "cache miss"), (warm, "cache hit")):
        details = {phase.detail for _, body in phases_of(run) for phase in body.phases}
        assert answer in details


def test_the_hook_is_told_of_where_torch_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told, not silently missing: on a torch without this point."""
    gone = dataclasses.replace(phases.HOOK, target="ChromiumEventLogger.gone")
    monkeypatch.setattr(phases, "HOOK", gone)
    with compilescope.capture() as seen:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert [hook.hook for hook in seen.digest.unavailable] == ["phases"]
    assert seen.digest.graphs == 1
