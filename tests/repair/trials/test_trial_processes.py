"""Processes of their own: limits, children, streams."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.base.processes.child import run_process
from gone import is_gone

_CHILD = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], {options})
print(child.pid, flush=True)
{then}
"""


def _run(code: str, folder: Path, **more):
    return run_process([sys.executable, "-c", code], os.environ, folder, **more)


def test_streams_and_status(tmp_path: Path) -> None:
    code = "import sys; print(sys.stdin.read()); print('e', file=sys.stderr); sys.exit(3)"
    ended = _run(code, tmp_path, stdin=b"given")
    assert (ended.status, ended.stdout, ended.stderr) == (3, b"given\n", b"e\n")
    assert not ended.timed_out
    assert _run("import sys; print(sys.stdin.read())", tmp_path).stdout == b"\n"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
@pytest.mark.parametrize("options", ["", "start_new_session=True"])
def test_a_limit_ends_all_children(tmp_path: Path, options: str) -> None:
    # Where a busy machine has not started the child by then, there is none to be ended.
    for limit_s in (1, 10, 60):
        code = _CHILD.format(options=options, then="time.sleep(600)")
        ended = _run(code, tmp_path, limit_s=limit_s)
        assert ended.timed_out
        assert ended.status < 0
        if ended.stdout:
            break
    assert is_gone(int(ended.stdout))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
def test_no_child_outlives_the_program(tmp_path: Path) -> None:
    ended = _run(_CHILD.format(options="", then=""), tmp_path)
    assert ended.status == 0
    assert is_gone(int(ended.stdout))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    pids: list[int] = []

    def interrupt(pid: int) -> None:
        pids.append(pid)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _run("import time; time.sleep(600)", tmp_path, started=interrupt)
    assert is_gone(pids[0])


def test_what_cannot_be_started_is_said(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="Cannot start"):
        run_process(["/no/such/program"], os.environ, tmp_path)
