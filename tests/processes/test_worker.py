"""Processes that serve requests: asked, late, dead, and forked for each order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.base.processes.channel import Channel
from compilescope.base.processes.worker import WarmWorker, Worker
from compilescope.base.settings import fresh_environment
from gone import is_gone

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
COMMAND = (sys.executable, str(Path(__file__).with_name("served.py")))
LONG_S = 600.0


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker((*COMMAND, "one")) as made:
        yield made


@pytest.fixture
def warm() -> Iterator[WarmWorker]:
    with WarmWorker((*COMMAND, "warm")) as made:
        assert made.hear(LONG_S) == str(made.pid).encode()
        yield made


def test_messages_come_whole(worker: Worker) -> None:
    long = b"echo " + bytes(range(256)) * 4000
    for asked in (b"echo \n\0", long, b"echo"):
        worker.send(asked)
        assert worker.hear(LONG_S) == asked


def test_an_answer_that_is_late_is_not_lost() -> None:
    ours, theirs = Channel.pair()
    with ours:
        assert ours.receive(0.0) is None
        with theirs:
            theirs._line.sendall((4).to_bytes(8, "big") + b"la")
            assert ours.receive(0.0) is None
            theirs._line.sendall(b"te")
            theirs.send(b"the next")
        assert [ours.receive(0.0) for _ in range(3)] == [b"late", b"the next", b""]
        with pytest.raises(OSError):
            ours.send(b"to nobody")


def test_a_death_has_a_reason(worker: Worker) -> None:
    worker.send(b"die %d" % signal.SIGSEGV)
    assert worker.hear(LONG_S) == b""
    worker.end(LONG_S)
    assert worker.status == -signal.SIGSEGV and worker.reason == "Killed by SIGSEGV."
    assert worker.last_line == "its last words" and not worker.killed_for_memory
    worker.send(b"echo")
    assert worker.hear(LONG_S) == b""
    worker.end()


def test_what_cannot_be_started_is_said() -> None:
    with pytest.raises(ToolError, match="Cannot start /no/such: No such file"):
        Worker(["/no/such"])


def test_another_thread_ends_the_wait(worker: Worker) -> None:
    worker.send(b"hang")
    assert worker.hear(LONG_S) == b"hangs"
    timer = threading.Timer(0.05, worker.kill)
    timer.start()
    assert worker.hear(LONG_S) == b""
    timer.join()


def test_it_leaves_with_whoever_started_it() -> None:
    """In the middle of its work, and though nobody could tell it to."""
    code = (
        "import os, sys\n"
        "from compilescope.base.processes.worker import Worker\n"
        "worker = Worker(sys.argv[1:])\n"
        "worker.send(b'hang')\n"
        "assert worker.hear(600) == b'hangs'\n"
        "print(worker.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", code, *COMMAND, "one"]
    ended = subprocess.run(command, env=fresh_environment(), stdout=subprocess.PIPE, timeout=600)
    assert is_gone(int(ended.stdout))


def test_each_order_has_a_fork(warm: WarmWorker) -> None:
    pids: list[int] = []
    assert warm.run(b"exit 3", LONG_S, started=pids.append) == (3, False)
    assert warm.run(b"die", LONG_S, started=pids.append) == (-signal.SIGSEGV, False)
    assert warm.run(b"nothing", LONG_S, started=pids.append) == (0, False)
    assert len({*pids, warm.pid}) == 4


def test_orders_of_several_threads_run_side_by_side(warm: WarmWorker, tmp_path: Path) -> None:
    marks = [tmp_path / str(number) for number in range(3)]
    found = []

    def ask(mark: Path) -> None:
        # None ends before all have begun.
        all_there = lambda: all(each.exists() for each in marks)  # noqa: E731
        found.append(warm.run(f"hang {mark}".encode(), LONG_S, enough=all_there))

    threads = [threading.Thread(target=ask, args=[mark]) for mark in marks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(-signal.SIGKILL, False)] * 3
    assert warm.run(b"exit 0", LONG_S) == (0, False)


def test_a_limit_ends_an_order_with_all_that_it_started(warm: WarmWorker) -> None:
    pids: list[int] = []
    assert warm.run(b"hang /dev/null", 0.2, started=pids.append) == (-signal.SIGKILL, True)
    assert is_gone(pids[0])
    assert warm.run(b"exit 0", LONG_S) == (0, False)


def test_a_warm_process_that_dies_is_told(warm: WarmWorker) -> None:
    pids: list[int] = []

    def kill(pid: int) -> None:
        pids.append(pid)
        warm.kill()

    assert warm.run(b"hang /dev/null", LONG_S, started=kill) is None
    assert is_gone(pids[0])
    assert warm.run(b"exit 0", LONG_S) is None
