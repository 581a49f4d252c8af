"""The command itself: what it refuses, in one sentence each, and files that shrink by a check."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.apps.cli.main import group
from compilescope.base.errors import ToolError
from compilescope.base.processes import deadline
from compilescope.change.minify.check_command import CommandCheck

CHECK = '#!/bin/sh\ngrep -q needle "$1"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _script(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return f"./{name}"


def _minify(*words: str) -> object:
    return group(["minify", *words], standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "No program given"),
        (("nope.py",), "There is no file nope.py"),
        (("program.py", "--site", "here"), "not FILE:LINE"),
        (("program.py", "--budget", "soon"), "is not a duration"),
        (("program.py", "--resume"), "nothing to resume"),
        (("program.py", "-o", "no/such/x.py"), "the folder no/such does not exist"),
        (("program.py", "-o", "."), "it is a folder"),
        (("program.py", "--violation", "2", "--predicate", "diff"), "--violation needs"),
        (("program.py", "--device", "x", "--predicate", "break"), "--device needs"),
        (("program.py", "--check", ""), "needs a command"),
        (("program.py", "--check", "'"), "cannot be parsed"),
        (("program.py", "--check", "./nope"), "no command"),
        (("program.py", "--check", "false"), "does not accept program.py itself"),
        (("program.py", "--check", "true", "--predicate", "break"), "not both"),
        (("program.py", "more", "--check", "true"), "takes one file"),
        (("--pytest", "x"), "takes a script"),
        (("broken.py",), "not valid Python"),
        (("binary.py",), "not UTF-8"),
        (("-m", "no.such.module"), "There is no module"),
        (("-m", "program", "--predicate", "diff"), "needs a script"),
    ],
)
def test_what_it_refuses(folder: Path, words: tuple[str, ...], says: str) -> None:
    (folder / "program.py").write_text("x = 1\n")
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "binary.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ToolError) as error:
        _minify(*words)
    assert says in error.value.message
    assert "\n" not in error.value.message


def test_a_file_of_the_users_is_not_written_over(folder: Path) -> None:
    (folder / "program.py").write_text("x = 1\n")
    (folder / "repro.py").write_text("mine\n")
    with pytest.raises(ToolError, match=r"repro\.py already exists"):
        _minify("program.py")


@pytest.mark.skipif(os.name != "posix", reason="starts as a supervisor does")
def test_statuses_count_where_child_signals_are_ignored(folder: Path) -> None:
    (folder / "notes.txt").write_text("hay\nneedle\nhay\n")
    words = ["minify", "--check", _script(folder, "check.sh", CHECK), "notes.txt"]
    done = subprocess.run(
        [sys.executable, "-m", "compilescope", *words],
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        capture_output=True,
        check=True,
    )
    assert (folder / "notes.min.txt").read_text().strip() == "needle", done.stdout


def test_any_file_shrinks_by_a_check(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check = _script(folder, "check.sh", CHECK)
    text = "".join(f"line {n}\n" for n in range(200)) + "a needle, and more\n" + "end\n" * 50
    (folder / "notes.txt").write_text(text)
    assert _minify("notes.txt", "--check", check, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (folder / "notes.min.txt").read_text() == "needle"
    assert answer["output"] == "notes.min.txt" and answer["stopped"] == ""
    assert answer["calls"] < 60 and answer["size"] == 1


def test_python_shrinks_as_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = f"#!{sys.executable}\nimport ast, sys\ntree = ast.parse(open(sys.argv[1]).read())\n"
    code += "names = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)]\n"
    code += "sys.exit('needle' not in names)\n"
    check = _script(folder, "check.py", code)
    program = "import os\nclass A:\n    def f(self, x):\n        return [needle(x), 2]\nA().f(3)\n"
    (folder / "program.py").write_text(program)
    assert _minify("program.py", "-o", "small.py", "--check", check, "--jobs", "2") == 0
    small = (folder / "small.py").read_text()
    assert "needle" in small and len(small.splitlines()) <= 3
    assert "runs" in capsys.readouterr().out


def test_bytes_that_are_no_text_come_through(folder: Path) -> None:
    (folder / "data.bin").write_bytes(b"\xff\xfe junk\nneedle\xf0\n\x00more\n" * 3)
    assert _minify("data.bin", "--check", _script(folder, "check.sh", CHECK)) == 0
    assert (folder / "data.min.bin").read_bytes() == b"needle"


def test_a_check_may_hang_crash_and_leave_children(folder: Path) -> None:
    hang = CommandCheck(_script(folder, "hang.sh", "#!/bin/sh\nsleep 600 &\nsleep 600\n"), "f", 0.5)
    assert hang.judge("x") == "timeout"
    crash = CommandCheck(_script(folder, "crash.sh", "#!/bin/sh\nkill -SEGV $$\n"), "f", 120)
    assert crash.judge("x") == "crashed"
    named = CommandCheck(
        _script(folder, "name.sh", '#!/bin/sh\n[ "$(basename "$1")" = f ] && [ -f f ]\n'), "f", 120
    )
    assert named.judge("x") == "kept"


def test_an_interrupted_check_is_resumed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its sixth call does not end.
    slow = f"echo >> {folder}/calls\n[ $(wc -l < {folder}/calls) -ne 6 ] || sleep 600\n"
    check = _script(folder, "check.sh", CHECK.replace("grep", slow + "grep"))
    (folder / "notes.txt").write_text("".join(f"line {n}\n" for n in range(50)) + "needle\n")
    calls = folder / "calls"
    calls.touch()
    with monkeypatch.context() as patch:
        # The time is nearly over once five calls were made, however long those took.
        over = 1000 - deadline.closing_s(1000) - 0.5
        patch.setattr(deadline, "clock", lambda: over if calls.read_text().count("\n") >= 5 else 0)
        words = ("--check", check, "--jobs", "1", "--budget", "1000")
        assert _minify("notes.txt", *words) == 0
    assert "--resume continues" in capsys.readouterr().out
    assert (folder / ".notes.min.txt.minify.json").exists()
    _script(folder, "check.sh", CHECK)
    assert _minify("notes.txt", "--check", check, "--resume") == 0
    assert (folder / "notes.min.txt").read_text() == "needle"
    assert not (folder / ".notes.min.txt.minify.json").exists()


@pytest.mark.torch
@pytest.mark.slow
def test_programs_without_a_cause_are_told(folder: Path) -> None:
    (folder / "plain.py").write_text("print('nothing to compile')\n")
    env = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "compilescope", "minify", "plain.py"],
        capture_output=True,
        text=True,
        env=env,
        timeout=300,
    )
    assert done.returncode == 2 and "nothing was compiled" in done.stderr
    assert "Traceback" not in done.stderr
