"""Candidates in processes of their own: whatever they do, the sandbox answers and goes on."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.change.minify.sandbox import Sandbox
from gone import is_gone

HERE = str(Path(__file__).parent)
TASKS = "sandbox_tasks"
posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def environment() -> dict[str, str]:
    package = str(Path(sys.modules["compilescope"].__file__ or "").parent.parent)
    return {"PYTHONPATH": os.pathsep.join([HERE, package])}


@pytest.fixture(scope="module", params=[True, False], ids=["forked", "spawned"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(120, 200 << 20, environment=environment(), fork=request.param) as made:
        yield made


def test_a_task_answers_from_a_process_of_its_own(sandbox: Sandbox) -> None:
    first = sandbox.run(f"{TASKS}:echo", {"a": [1, None, "ü"]})
    second = sandbox.run(f"{TASKS}:echo")
    assert first.status == second.status == "done"
    assert first.value["given"] == {"a": [1, None, "ü"]}
    assert len({first.value["pid"], second.value["pid"], os.getpid()}) == 3


def test_an_exception_is_an_answer(sandbox: Sandbox) -> None:
    answer = sandbox.run(f"{TASKS}:refuse", "this")
    assert (answer.status, answer.error) == ("failed", "ValueError: not this")
    assert sandbox.run(f"{TASKS}:leave_politely", 3).error == "SystemExit: 3"
    assert sandbox.run("no_such_module:f").error.startswith("ModuleNotFoundError")


def test_who_is_killed_need_not_have_taken_memory(sandbox: Sandbox) -> None:
    answer = sandbox.run(f"{TASKS}:crash", "SIGKILL")
    assert (answer.status, answer.signal) == ("memory", signal.SIGKILL)
    assert answer.error == "it was killed by SIGKILL, as the system does where memory runs out"


def test_what_it_prints_is_kept(sandbox: Sandbox) -> None:
    answer = sandbox.run(f"{TASKS}:shout", 1)
    assert "heard on stdout" in answer.output
    assert "heard on stderr" in answer.output


def test_a_crash_is_survived(sandbox: Sandbox) -> None:
    answer = sandbox.run(f"{TASKS}:crash", "SIGSEGV")
    assert (answer.status, answer.signal) == ("crashed", signal.SIGSEGV)
    answer = sandbox.run(f"{TASKS}:leave", 7)
    assert (answer.status, answer.error) == ("crashed", "exited with 7")
    assert sandbox.run(f"{TASKS}:leave", 0).status == "crashed"
    assert sandbox.run(f"{TASKS}:echo").is_done


def test_too_much_memory_is_survived(sandbox: Sandbox) -> None:
    assert sandbox.run(f"{TASKS}:devour", 20 << 20).status == "memory"
    assert sandbox.run(f"{TASKS}:echo").is_done


def test_a_long_answer_comes_whole(sandbox: Sandbox) -> None:
    assert len(sandbox.run(f"{TASKS}:large", 3 << 20).value) == 3 << 20


@posix
def test_a_hang_ends_with_all_that_it_started(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    with Sandbox(120, environment=environment()) as sandbox:
        # Where a busy machine has not started the child by then, there is none to be ended.
        for limit_s in (0.5, 5, 60):
            answer = sandbox.run(f"{TASKS}:hang", str(noted), limit_s=limit_s)
            assert answer.status == "timeout"
            assert f"{limit_s} s" in answer.error
            if noted.exists():
                break
    assert is_gone(int(noted.read_text())), "what it started lives on"


@posix
def test_tasks_of_several_threads_run_side_by_side() -> None:
    found = []
    with Sandbox(120, environment=environment()) as sandbox:

        def ask(number: int) -> None:
            found.append(sandbox.run(f"{TASKS}:echo", number).value["given"])

        threads = [threading.Thread(target=ask, args=[number]) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == list(range(12))


@posix
def test_a_killed_warm_process_is_replaced() -> None:
    with Sandbox(120, environment=environment()) as sandbox:
        assert sandbox.run(f"{TASKS}:echo").is_done
        assert sandbox._worker is not None
        sandbox._worker.kill()
        assert sandbox._worker.wait(600) == -signal.SIGKILL
        assert sandbox.run(f"{TASKS}:echo").is_done


@posix
def test_what_cannot_be_imported_is_said() -> None:
    with Sandbox(warm=["no_such_module"]) as sandbox, pytest.raises(ToolError, match="no_such"):
        sandbox.run(f"{TASKS}:echo")


@posix
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux alone")
def test_a_daemon_ends_with_its_task() -> None:
    with Sandbox(600, environment=environment(), fork=True) as sandbox:
        answer = sandbox.run(f"{TASKS}:leave_a_daemon")
        assert answer.is_done
        assert is_gone(answer.value)
