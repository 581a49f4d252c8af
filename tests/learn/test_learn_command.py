"""`compilescope learn` from outside: lists, files, exercises, mistakes."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import called
from compilescope.apps.cli.commands.learn.player import FAILED, play
from compilescope.apps.learn.lesson import Lesson, all_lessons, find_lesson, read_cells

COMMAND = [sys.executable, "-m", "compilescope", "learn"]
BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {module!r}:
            raise ImportError(f"{{name}} is blocked")
sys.meta_path.insert(0, Block())
sys.argv = ["compilescope", "learn", *{arguments!r}]
from compilescope.apps.cli.main import main
main()
"""


def learn(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return called("learn", *arguments, cwd=cwd)


def learn_apart(*arguments: object) -> subprocess.CompletedProcess[str]:
    """In a process of its own, as what runs a user's answer is."""
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def without(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = BLOCKED.format(module=module, arguments=arguments)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize("arguments", [(), ("--list",)])
def test_the_list_names_every_lesson(arguments: tuple[str, ...]) -> None:
    done = learn(*arguments)
    assert done.returncode == 0
    for lesson in all_lessons():
        assert lesson.slug in done.stdout
    assert "compilescope learn 1" in done.stdout


def test_the_list_as_json() -> None:
    done = learn("--list", "--json")
    rows = json.loads(done.stdout)["lessons"]
    assert [row["number"] for row in rows] == [lesson.number for lesson in all_lessons()]
    assert set(rows[0]) == {"number", "slug", "title", "question", "path"}
    assert Path(rows[0]["path"]).is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["99"], "There is no lesson 99"),
        (["x"], "There is no lesson x"),
        (["1", "--all"], "--all takes no lesson"),
        (["1", "--list"], "--list takes no lesson"),
        (["--list", "--all"], "can't be combined"),
        (["1", "--solution", "--exercise", "a.py"], "can't be combined"),
        (["--check", "a.py"], "--check needs a lesson"),
        (["1", "--step"], "needs a terminal"),
        (["1", "--step", "--solution"], "--step is for running one lesson"),
        (["1", "--check", "nowhere.py"], "There is no file nowhere.py"),
        (["1", "--exercise", "no/such/folder/a.py"], "Cannot write"),
    ],
)
def test_mistakes_give_one_sentence(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = learn(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_without_torch_everything_but_running_works(tmp_path: Path) -> None:
    assert without("torch", "--list").returncode == 0
    assert "def " in without("torch", "2", "--solution").stdout
    file = tmp_path / "a.py"
    assert without("torch", "2", "--exercise", str(file)).returncode == 0
    for arguments in (["2"], ["--all"], ["2", "--check", str(file)]):
        done = without("torch", *arguments)
        assert done.returncode == 2
        assert "torch, which is not installed" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_notebook_needs_nbformat(tmp_path: Path) -> None:
    done = without("nbformat", "2", "--notebook", str(tmp_path / "a.ipynb"))
    assert done.returncode == 2
    assert "compilescope[notebook]" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_notebook_is_written_once(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    path = tmp_path / "two.ipynb"
    assert learn("2", "--notebook", path).returncode == 0
    first = path.read_text()
    cells = nbformat.reads(first, 4).cells
    lesson = find_lesson("2")
    assert cells[0].source == lesson.cells[0].text
    assert cells[-2].source.endswith("judge(check, globals())")
    assert lesson.tagged("solution").text not in first
    done = learn("2", "--notebook", path)
    assert done.returncode == 2
    assert "exists" in done.stderr
    assert learn("2", "--notebook", path, "--force").returncode == 0
    assert path.read_text() == first


def test_the_exercise_is_a_file_that_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    done = learn("2", "--exercise", path)
    assert done.returncode == 0
    assert f"learn 2 --check {path}" in done.stdout
    text = path.read_text()
    assert text.startswith("# ## Exercise\n")
    assert find_lesson("2").tagged("exercise").text in text
    path.write_text("mine")
    assert learn("2", "--exercise", path).returncode == 2
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("def step(x:\n    pass\n", "mine.py:1: "),
        ("x = 1\ny = x / 0\n", "mine.py:2: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(0)\n", "mine.py:2: SystemExit: 0"),
        ("import os\nos._exit(0)\n", "ended its process with status 0"),
        ("import nonsense_module\n", "mine.py:1: ModuleNotFoundError"),
        ("\x00", "mine.py"),
    ],
)
def test_an_answer_that_cannot_be_judged(answer: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(answer)
    done = learn_apart("2", "--check", path)
    assert done.returncode == 2, done.stdout
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_answer_has_a_time_limit(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import time\ntime.sleep(600)\n")
    done = learn_apart("2", "--check", path, "--limit", "1")
    assert done.returncode == 2
    assert "did not finish within 1 seconds" in done.stderr


@pytest.mark.slow
@pytest.mark.torch
def test_an_answer_that_crashes_in_the_check_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def step(x):\n    return x.no_such_thing()\n")
    done = learn_apart("2", "--check", path)
    assert done.returncode == 2
    assert "mine.py:2: " in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.torch
def test_an_answer_without_the_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("print('hello')\n")
    done = learn_apart("2", "--check", path)
    assert done.returncode == 1
    assert done.stdout == "hello\nNot yet. Your code defines no `step`.\n"


def small(text: str, folder: Path) -> Lesson:
    path = folder / "77_small.py"
    path.write_text(text)
    return Lesson(77, "small", path, tuple(read_cells(text)))


def test_a_cell_that_raises_ends_the_lesson_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    text = "# %% [markdown]\n# # T\n# Why?\n# %%\nprint('one')\n# %%\n1 / 0\n# %%\nprint('two')\n"
    assert play(small(text, tmp_path), step=False) == FAILED
    out, err = capsys.readouterr()
    assert "one\n" in out
    assert "two" not in out
    assert f'File "{tmp_path / "77_small.py"}", line 7' in err
    assert "run_cell" not in err


def test_cells_share_their_names_and_the_exercise_is_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    text = "# %%\nimport inspect\ndef f():\n    return 6\n# %%\nprint(f() * 7, __name__)\n"
    text += 'print(inspect.getsource(f))\n# %% tags=["exercise"]\nraise ValueError\n'
    text += '# %% tags=["check"]\nraise ValueError\n# %% tags=["solution"]\nsecret\n'
    assert play(small(text, tmp_path), step=False) == 0
    out = capsys.readouterr().out
    assert "42 __main__\n" in out
    assert "def f():\n    return 6\n" in out
    assert "raise ValueError" in out
    assert "secret" not in out
    assert "compilescope learn 77 --check 77_answer.py" in out


def test_all_lessons_are_run_though_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []

    def play_lesson(lesson: Lesson, *, step: bool) -> int:
        ran.append(lesson.number)
        return 1 if lesson.number == 2 else 0

    monkeypatch.setattr("compilescope.apps.cli.commands.learn.processes.play_lesson", play_lesson)
    done = learn("--all")
    assert done.returncode == 1
    assert f"{len(ran)} run, 1 failed" in done.stdout
    assert done.stderr == "compilescope: lesson 2 failed.\n"
    assert ran == [lesson.number for lesson in all_lessons()]


class Terminal:
    """A command with a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
        )
        os.close(theirs)
        self.seen = ""

    def until(self, words: str, seconds: float = 600) -> None:
        limit = time.monotonic() + seconds
        while words not in self.seen:
            assert time.monotonic() < limit, self.seen
            self._read()

    def type(self, text: str) -> None:
        self.seen = ""
        os.write(self._ours, text.encode())

    def end(self) -> int:
        while self.process.poll() is None:
            self._read()
        os.close(self._ours)
        return self.process.returncode

    def _read(self) -> None:
        ready, _, _ = select.select([self._ours], [], [], 0.2)
        if ready:
            try:
                self.seen += os.read(self._ours, 65536).decode(errors="replace")
            except OSError:  # The other side is closed.
                time.sleep(0.05)


def test_the_menu_asks_again_and_enter_quits() -> None:
    terminal = Terminal()
    terminal.until("Enter quits")
    terminal.type("99\n")
    terminal.until("There is no lesson 99")
    terminal.until("Enter quits")
    terminal.type("\n")
    assert terminal.end() == 0


@pytest.mark.torch
def test_a_step_waits_and_q_leaves() -> None:
    terminal = Terminal("2", "--step")
    terminal.until("q to leave")
    assert "RESUME" in terminal.seen
    terminal.type("q\n")
    assert terminal.end() == 0


def test_ctrl_c_ends_a_lesson_without_a_traceback(tmp_path: Path) -> None:
    # Its first cell does not end.
    (tmp_path / "torch.py").write_text("import time\ntime.sleep(600)\n")
    process = subprocess.Popen(
        [*COMMAND, "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "import torch" in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "Traceback" not in err
