"""The program's status is ours, whatever has become of stdout and stderr."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from recorder.harness import captured_command, environment

SEVEN = "import sys; sys.exit(7)"
KILLED = "import os; os.kill(os.getpid(), 15)"


@pytest.mark.parametrize(
    ("code", "status", "streams"),
    [
        (SEVEN, 7, "2>/dev/full"),
        (SEVEN, 7, "2>&-"),
        (KILLED, 143, ">&- 2>/dev/full"),
        *(
            pytest.param(code, status, streams, marks=pytest.mark.slow)
            for code, status in ((SEVEN, 7), (KILLED, 143))
            for streams in (">&-", ">/dev/full", "<&- >&- 2>&-", "2>&1 | true", "2>&1 | head -c1")
        ),
    ],
)
def test_status(tmp_path: Path, code: str, status: int, streams: str) -> None:
    for more in ([], ["--json"]) if streams == "2>/dev/full" else ([],):
        command = shlex.join(captured_command(tmp_path, *more, "-c", code))
        assert in_shell(f"{command} {streams}") == status


def test_status_of_a_mistake(tmp_path: Path) -> None:
    command = shlex.join(captured_command(tmp_path, "absent.py"))
    assert in_shell(f"{command} 2>/dev/full") == 2


def test_a_deleted_folder_is_named(tmp_path: Path) -> None:
    words = captured_command(tmp_path / "runs", "-c", "print('mine')")
    gone = tmp_path / "gone"
    script = f"mkdir {gone} && cd {gone} && rmdir {gone} && {shlex.join(words)}"
    done = subprocess.run(
        ["bash", "-c", script], env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == "compilescope: error: The current folder was deleted."


def test_our_words_never_go_to_the_programs_stdout(tmp_path: Path) -> None:
    """`print` to a stderr that is None goes to stdout."""
    command = shlex.join(captured_command(tmp_path, "-c", "print('mine')"))
    done = subprocess.run(
        ["bash", "-c", f"{command} 2>&-"], env=environment(), capture_output=True, check=True
    )
    assert done.stdout == b"mine\n"


def in_shell(line: str) -> int:
    script = f"{line}\nexit ${{PIPESTATUS[0]}}"
    return subprocess.run(
        ["bash", "-c", script], env=environment(), capture_output=True, check=False
    ).returncode


def test_inspecting_is_the_programs_business(tmp_path: Path) -> None:
    """PYTHONINSPECT is meant for the program: the launcher itself must end."""
    done = subprocess.run(
        captured_command(tmp_path, "-q", "-c", "import sys; print(sys.flags.inspect)"),
        env=environment({"PYTHONINSPECT": "1"}),
        input=b"print('typed')\n",
        capture_output=True,
        check=False,
    )
    plain = subprocess.run(
        [sys.executable, "-c", "import sys; print(sys.flags.inspect)"],
        env=environment({"PYTHONINSPECT": "1"}),
        input=b"print('typed')\n",
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
