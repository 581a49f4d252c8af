"""A program within limits: memory of its whole tree, output, and what its end says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compilescope.base.processes.child import end_process, run_process, run_within
from compilescope.base.processes.outcome import ProcessEnd
from compilescope.base.processes.table import is_running
from waiting import until

_MB = 10**6


def _run(code: str, folder: Path, **more) -> ProcessEnd:
    more = {"limit_s": 280.0, "tail_bytes": 1000, **more}
    return run_process([sys.executable, "-c", code], os.environ, folder, **more)


def test_a_program_that_takes_too_much_memory_is_stopped(tmp_path: Path) -> None:
    code = "a = []\nwhile True: a.append(bytearray(10**7))"
    ended = _run(code, tmp_path, memory_bytes=200 * _MB)
    assert ended.out_of_memory
    assert not ended.timed_out
    assert ended.reason == "Stopped at its memory limit of 0.2 GB."


def test_pages_that_forked_children_share_count_once(tmp_path: Path) -> None:
    code = (
        "import os, time\na = bytearray(120 * 10**6)\n"
        "for _ in range(3):\n    if os.fork() == 0: time.sleep(1.5); os._exit(0)\n"
        "for _ in range(3): os.wait()"
    )
    assert _run(code, tmp_path, memory_bytes=250 * _MB).status == 0


def test_memory_of_children_counts(tmp_path: Path) -> None:
    code = (
        "import os, time\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0: a = bytearray(120 * 10**6); time.sleep(600)\n"
        "os.wait()"
    )
    assert _run(code, tmp_path, memory_bytes=250 * _MB).out_of_memory


def test_an_answer_is_kept_whole_apart_from_what_is_said_meanwhile(tmp_path: Path) -> None:
    heard: list[bytes] = []
    code = "import sys\nprint('x' * 5000)\nprint('y' * 5000, file=sys.stderr)"
    ended = _run(code, tmp_path, heard=heard.append, apart=True)
    assert ended.stdout == b"x" * 5000 + b"\n"
    assert ended.stderr == b"y" * 999 + b"\n"
    assert b"".join(heard) == b"y" * 5000 + b"\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's own limit")
def test_the_kernel_refuses_what_is_far_above_the_limit(tmp_path: Path) -> None:
    ended = _run("a = bytearray(10**12)", tmp_path, memory_bytes=200 * _MB)
    assert (ended.status, ended.out_of_memory) == (1, True)
    assert ended.reason == "Ran out of memory: MemoryError"


@pytest.mark.parametrize(
    ("said", "exhausted"),
    [
        ("RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried", True),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", True),
        ("MemoryError", True),
        ("numpy._core._exceptions._ArrayMemoryError: Unable", True),
        ("ValueError: no MemoryError here", False),
        ("    except MemoryError:", False),
    ],
)
def test_what_a_program_says_of_its_memory(tmp_path: Path, said: str, exhausted: bool) -> None:
    ended = _run(f"import sys; print({said!r}, file=sys.stderr); sys.exit(1)", tmp_path)
    assert ended.out_of_memory is exhausted
    assert said.strip() in ended.reason


def test_words_alone_make_no_failure(tmp_path: Path) -> None:
    ended = _run("import sys; print('MemoryError', file=sys.stderr)", tmp_path)
    assert (ended.status, ended.out_of_memory, ended.reason) == (0, False, "")


def test_a_signal_is_named(tmp_path: Path) -> None:
    ended = _run("import os; os.abort()", tmp_path)
    assert (ended.status, ended.reason) == (-signal.SIGABRT, "Killed by SIGABRT.")


@pytest.mark.skipif(not Path("/proc/vmstat").exists(), reason="looks at /proc")
def test_sigkill_from_somebody_is_not_the_kernels(tmp_path: Path) -> None:
    ended = _run("import os; os.kill(os.getpid(), 9)", tmp_path)
    assert (ended.out_of_memory, ended.reason) == (False, "Killed by SIGKILL.")


def test_only_the_tail_of_a_long_output_is_kept(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "for i in range(20000): print('x' * 999)\n"
        "print('last'); print('e', file=sys.stderr)"
    )
    ended = _run(code, tmp_path)
    assert len(ended.stdout) == 1000
    assert ended.stdout.endswith(b"x\nlast\n")
    assert ended.stderr == b"e\n"
    assert [path.name for path in tmp_path.iterdir()] == ["stdin"]


def test_output_without_end_meets_the_time_limit(tmp_path: Path) -> None:
    # Where a busy machine has not started it by then, there is no output yet.
    for limit_s in (0.7, 7.5, 30.5):
        ended = _run("while True: print('x' * 10000)", tmp_path, limit_s=limit_s)
        assert ended.timed_out
        assert ended.reason == f"Stopped at its time limit of {limit_s} s."
        if ended.stdout:
            break
    assert len(ended.stdout) == 1000


def test_a_program_that_closes_its_streams_runs_on(tmp_path: Path) -> None:
    code = "import os, time; os.close(1); os.close(2); time.sleep(0.3); os._exit(7)"
    assert _run(code, tmp_path).status == 7


def test_a_stranger_that_holds_the_output_is_not_waited_for(tmp_path: Path) -> None:
    """It left the session, and so is not ended; the program's end is still the end."""
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
        " start_new_session=True)\nprint(child.pid)"
    )
    ended = _run(code, tmp_path)
    os.kill(int(ended.stdout), signal.SIGKILL)
    assert ended.status == 0


def test_what_it_raised_is_named_and_not_the_advice_after_it(tmp_path: Path) -> None:
    code = "raise RuntimeError('shapes differ\\n\\nSet VERBOSE=1 for more')"
    assert _run(code, tmp_path).reason == "Exited with status 1: RuntimeError: shapes differ"
    code = "import sys; print('x\\nNo config.\\n', file=sys.stderr); sys.exit(3)"
    assert _run(code, tmp_path).reason == "Exited with status 3: No config."


def test_a_folder_to_run_in(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    ended = _run("import os; print(os.getcwd())", tmp_path, cwd=inside)
    assert ended.stdout.decode().strip() == str(inside.resolve())


def test_who_runs() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    now = time.time()
    assert is_running(process.pid)
    assert is_running(process.pid, since=now)
    # Started after what is meant: the number was given out again.
    assert not is_running(process.pid, since=now - 3600)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not is_running(process.pid)  # It waits to be reaped.
    process.wait()
    assert not is_running(process.pid)


@pytest.mark.parametrize("waits", [False, True])
def test_what_a_command_started_ends_with_it_or_at_the_limit(waits: bool, tmp_path: Path) -> None:
    told = tmp_path / "pid"
    command = ["sh", "-c", "sleep 600 & echo $!" + ("; wait" if waits else "")]
    if waits:
        # Where a busy machine has not started it by then, there is none to be ended.
        for limit_s in (0.5, 5.0, 60.0):
            with told.open("wb") as out, pytest.raises(subprocess.TimeoutExpired):
                run_within(command, limit_s, stdout=out)
            if told.read_text():
                break
    else:
        with told.open("wb") as out:
            assert run_within(command, 280.0, stdout=out).returncode == 0
    until(lambda: not is_running(int(told.read_text())))


def test_a_process_has_its_patience_to_end_by_itself() -> None:
    code = "import sys; sys.stdin.read(); sys.exit(5)"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True
    )
    assert process.stdin is not None
    process.stdin.close()
    end_process(process, 280.0)
    assert process.returncode == 5
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    end_process(process)
    assert process.returncode == -signal.SIGKILL
