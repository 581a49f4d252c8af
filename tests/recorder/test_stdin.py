"""`compilescope run -`: the program comes from standard input, as with `python -`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.apps.cli.main import group
from compilescope.base.errors import ToolError
from compilescope.record.home import list_runs
from recorder.harness import captured_command, environment, finish, show, start

_BROKEN = """import sys, torch
@torch.compile(backend="eager")
def f(x):
    y = x + 1
    print("between")
    return y * 2
f(torch.ones(3))
"""


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nprint(sys.argv, __name__, sys.path[0] == '')\nsys.exit(3)",
        "def f():\n    raise ValueError('end')\nf()",
        "",
        "x = = 1",
        "print(open(0).read() == '')",
    ],
    ids=["argv", "raises", "empty", "syntax", "drained"],
)
def test_it_is_what_python_does(text: str, tmp_path: Path) -> None:
    plain = finish(start([sys.executable, "-", "a", "-b"], stdin=subprocess.PIPE), text.encode())
    words = captured_command(tmp_path, "-q", "-", "a", "-b")
    ours = finish(start(words, stdin=subprocess.PIPE), text.encode())
    assert (ours.status, ours.stdout) == (plain.status, plain.stdout)
    assert ours.stderr == plain.stderr
    ((_, header),) = list_runs(tmp_path)[0]
    assert header.command == ("-", "a", "-b")
    assert header.run.endswith("-stdin")


def test_a_file_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    script = tmp_path / "script.txt"
    script.write_text("print(1)\nraise SystemExit(4)\n")
    with script.open() as file:
        done = finish(start(captured_command(tmp_path / "home", "-"), stdin=file.fileno()))
    assert (done.status, done.stdout) == (4, b"1\n")
    done = finish(
        start(captured_command(tmp_path / "home", "-"), stdin=subprocess.PIPE), b"\xff\xfe\x00\x01"
    )
    assert done.status == 1
    assert b"SyntaxError" in done.stderr
    assert b'File "/' not in done.stderr


def test_without_standard_input_nothing_runs(tmp_path: Path) -> None:
    words = captured_command(tmp_path / "home", "-")
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "There is no program to read: standard input is closed." in done.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.slow
@pytest.mark.torch
def test_its_lines_are_shown(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = finish(start(captured_command(home, "-"), stdin=subprocess.PIPE), _BROKEN.encode())
    assert b"<stdin>:5 in f" in done.stderr
    assert b'print("between")' in done.stderr
    assert b"fix --script" not in done.stderr
    seen = show(home)
    (site,) = seen["sites"]
    assert (site["file"], site["line"]) == ("<stdin>", 5)
    assert site["source"].strip() == 'print("between")'


@pytest.mark.parametrize("command", ["fix", "minify"])
def test_what_runs_a_program_often_needs_a_file(command: str) -> None:
    with pytest.raises(ToolError, match=f"{command} needs a file") as error:
        group([command, "-"], standalone_mode=False)
    assert "\n" not in error.value.message
