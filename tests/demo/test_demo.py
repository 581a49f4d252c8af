"""`compilescope demo`, as its users call it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from commands import called
from compilescope.apps.cli.commands.demo import output as demo_telling
from waiting import until

TOOL = [sys.executable, "-m", "compilescope", "demo"]
ENVIRONMENT = {**os.environ, "COLUMNS": "80", "TERM": "xterm-256color"}


def demo(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TOOL, *words], capture_output=True, text=True, env=ENVIRONMENT)


def answer(*words: str) -> Any:
    return json.loads(demo(*words, "--json").stdout)


class Screen:
    """The demo at a terminal."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*TOOL, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=ENVIRONMENT,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.text = ""

    def read_until(self, words: str, times: int = 1) -> None:
        while self.text.count(words) < times:
            piece = self._read()
            assert piece, f"{words!r} never came: {self.text!r}"
            self.text += piece

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> int:
        while piece := self._read():
            self.text += piece
        return self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)

    def _read(self) -> str:
        with suppress(OSError):  # How Linux says that nobody holds the other end.
            return os.read(self._ours, 65536).decode(errors="replace")
        return ""


@contextmanager
def screen(*words: str) -> Iterator[Screen]:
    shown = Screen(words)
    try:
        yield shown
    finally:
        shown.close()


def test_the_list() -> None:
    done = demo("--list")
    assert done.returncode == 0 and "  capture " in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    steps = answer("--list")["steps"]
    assert [step["step"] for step in steps][:3] == ["capture", "explain", "fix"]
    first = steps[0]["commands"][0]
    assert first == {"command": "compilescope run model.py", "exit_expected": 0}


def test_without_a_terminal_it_needs_yes() -> None:
    done = demo()
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == (
        "compilescope: error: The demo asks before each step; without a terminal, use --yes.\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--json"], "--json needs --yes or --list."),
        (["--batch", "2"], "--model is needed for --batch."),
        (["--atol", "0"], "--model is needed for --atol."),
        (["--model", "bert", "--list"], "--model cannot be combined with --list."),
        (["--model", "bert", "--only", "fix"], "--model cannot be combined with --only."),
        (["--only", "nothing", "--yes"], "There is no step 'nothing'."),
    ],
)
def test_what_does_not_go_together(words: list[str], sentence: str) -> None:
    done = called("demo", *words)
    assert done.returncode == 2 and sentence in done.stderr and done.stdout == ""


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("mine = True\n")
    done = demo("--yes", "--only", "registry", "--dir", str(tmp_path))
    assert done.returncode == 2 and "is not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model.py"]


def test_one_step_unattended(tmp_path: Path) -> None:
    done = demo("--yes", "--only", "registry", "--dir", str(tmp_path / "tour"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "  $ compilescope registry show GB0170" in lines
    assert max(map(len, lines)) <= 80 + len(str(tmp_path))
    assert "1 of 1 steps did what they should" in done.stdout
    assert (tmp_path / "tour" / "output" / "11-registry-1.txt").is_file()
    assert "In a browser" not in done.stdout  # This step records no run.


def test_the_summary_leads_to_the_dashboard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a tour" / ".compilescope").mkdir(parents=True)
    demo_telling._print_summary([], 0, tmp_path / "a tour")
    assert "In a browser: compilescope serve --dir" in capsys.readouterr().out


def test_one_step_as_json(tmp_path: Path) -> None:
    value = answer("--yes", "--only", "registry", "--dir", str(tmp_path / "tour"))
    assert value["folder"] == str(tmp_path / "tour") and value["exit_code"] == 0
    [step] = value["steps"]
    assert (step["step"], step["status"]) == ("registry", "ok")
    [command] = step["commands"]
    assert (command["exit_expected"], command["exit_status"]) == (0, 0)
    assert command["command"] == "compilescope registry show GB0170" and command["seconds"] >= 0


def test_at_a_terminal_each_step_waits(tmp_path: Path) -> None:
    with screen("--only", "registry", "--only", "capture", "--dir", str(tmp_path / "t")) as shown:
        shown.read_until("q: quit  > ")
        assert "compilescope run model.py" in shown.text
        shown.type("s\n")
        shown.read_until("q: quit  > ", 2)
        shown.type("\n")
        assert shown.end() == 0
    assert "GB0170" in shown.text and "skipped" in shown.text
    assert "1 of 2 steps did what they should" in shown.text
    assert not (tmp_path / "t" / "output" / "01-capture-1.txt").exists()


def test_quitting_runs_nothing_more(tmp_path: Path) -> None:
    with screen("--dir", str(tmp_path / "t")) as shown:
        shown.read_until("q: quit  > ")
        shown.type("what?\n")  # Asks again.
        shown.read_until("q: quit  > ", 2)
        shown.type("q\n")
        assert shown.end() == 0
    assert re.search(r"0 of \d+ steps did what they should", shown.text)
    assert list((tmp_path / "t").iterdir()) == []


def test_skipping_a_step_skips_those_that_read_it(tmp_path: Path) -> None:
    with screen("--only", "explain", "--dir", str(tmp_path / "t")) as shown:
        shown.read_until("q: quit  > ")
        shown.type("s\n")
        assert shown.end() == 0
    assert "Skipped: it reads the result of the step capture." in shown.text


def _sleeps(pid: int) -> bool:
    """Linux tells; elsewhere it is taken to wait."""
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.parametrize("moment", ["at the prompt", "while a command runs"])
def test_ctrl_c(moment: str, tmp_path: Path) -> None:
    with screen("--only", "capture", "--dir", str(tmp_path / "t")) as shown:
        shown.read_until("q: quit  > ")
        if moment != "at the prompt":
            shown.type("\n")
            shown.read_until("Capture: compilescope run model.py")
        else:
            # Between printing a prompt and waiting for an answer, Python only notes a signal.
            until(lambda: _sleeps(shown.process.pid))
        os.kill(shown.process.pid, signal.SIGINT)
        assert shown.end() == 130
    assert "Traceback" not in shown.text and "compilescope: stopped" in shown.text
    assert str(tmp_path / "t") in shown.text.replace("\r\n", "")


# About 2 min.
@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_whole_tour(tmp_path: Path) -> None:
    folder = tmp_path / "tour"
    value = answer("--yes", "--dir", str(folder))
    assert [(step["step"], step["reason"]) for step in value["steps"] if step["reason"]] == []
    assert value["exit_code"] == 0 and {step["status"] for step in value["steps"]} == {"ok"}
    assert len(value["steps"]) >= 11
    for step in value["steps"]:
        for command in step["commands"]:
            assert command["exit_status"] == command["exit_expected"], command
    assert "<html" in (folder / "report.html").read_text()
    assert "torch.where" in (folder / "model_fixed.py").read_text()
    assert "gelu" in (folder / "repro.py").read_text()
