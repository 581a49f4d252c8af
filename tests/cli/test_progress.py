"""A bar at a terminal, a line now and then elsewhere, and nothing of either once it is over."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from compilescope.apps.cli.progress import CurrentWork, duration, working

SHOWN, HIDDEN, ERASED = "\x1b[?25h", "\x1b[?25l", "\x1b[2K"
WORK = """
    import sys
    from compilescope.apps.cli.progress import working

    with working("fix", "running", patience_s=0, every_s=0.01) as work:
        for line in sys.stdin:
            exec(line)
    print("the answer")
"""


class Terminal:
    """A program whose stderr is a terminal, read as it comes."""

    def __init__(self, words: list[str], **environment: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=theirs,
            text=True,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **environment},
            start_new_session=True,
        )
        os.close(theirs)
        self.text = ""

    def read_until(self, words: str) -> None:
        while words not in self.text:
            piece = self._read()
            assert piece, f"{words!r} never came: {self.text!r}"
            self.text += piece

    def end(self, line: str = "") -> str:
        """What it wrote to stdout."""
        stdout, _ = self.process.communicate(line)
        while piece := self._read():
            self.text += piece
        os.close(self._ours)
        return stdout

    def _read(self) -> str:
        with suppress(OSError):  # How Linux says that nobody holds the other end.
            return os.read(self._ours, 65536).decode(errors="replace")
        return ""


@contextmanager
def terminal(*words: str, **environment: str) -> Iterator[Terminal]:
    started = Terminal([sys.executable, *words], **environment)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()


def is_whole(text: str) -> bool:
    """The cursor is there, and the line is empty."""
    return text.rfind(SHOWN) > text.rfind(HIDDEN) and text.endswith(ERASED)


def test_a_bar_comes_and_goes_at_a_terminal() -> None:
    with terminal("-c", textwrap.dedent(WORK)) as shown:
        shown.read_until("running")
        assert HIDDEN in shown.text and "━" not in shown.text
        assert shown.process.stdin is not None
        shown.process.stdin.write('work.show("a.py:3 \\x1b[31m[red] " + "x" * 200, 1, 4)\n')
        shown.process.stdin.flush()
        shown.read_until("1 of 4: a.py:3 \\x1b[31m[red] xx")
        assert "━━━━━" in shown.text and "…" in shown.text
        stdout = shown.end()
    assert stdout == "the answer\n"
    assert is_whole(shown.text)
    assert shown.text.count("\n") == 1, "one line, drawn over and over"


def test_what_is_said_stays_above_the_bar() -> None:
    with terminal("-c", textwrap.dedent(WORK)) as shown:
        shown.read_until("running")
        assert shown.process.stdin is not None
        shown.process.stdin.write('work.say("a.py:3: [red] verified\\x1b")\n')
        shown.process.stdin.flush()
        shown.read_until("compilescope: fix: a.py:3: [red] verified\\x1b, ")
        shown.end()
    assert is_whole(shown.text)
    assert shown.text.count("\n") == 2


def test_ctrl_c_leaves_the_terminal_whole() -> None:
    with terminal("-c", textwrap.dedent(WORK)) as shown:
        shown.read_until("running")
        shown.process.send_signal(signal.SIGINT)
        shown.end()
        before, _, traceback = shown.text.partition("Traceback")
    assert is_whole(before) and "KeyboardInterrupt" in traceback


def test_a_stopped_command_leaves_the_terminal_whole(tmp_path: Path) -> None:
    file, begun = tmp_path / "some.txt", tmp_path / "begun"
    file.write_text("1\n2\n")
    os.mkfifo(begun)
    check = f"sh -c 'echo > {begun}; sleep 600'"
    words = ("minify", "--json", "--check", check, "-o", str(tmp_path / "small"), str(file))
    with terminal("-m", "compilescope", *words) as shown:
        begun.read_text()
        shown.read_until("running the whole program")
        os.killpg(shown.process.pid, signal.SIGINT)
        stdout = shown.end()
        assert is_whole(shown.text), shown.text[-500:]
        assert shown.process.returncode == 130
    assert stdout.startswith("{") and stdout.endswith("}\n")


def test_a_dumb_terminal_gets_lines() -> None:
    with terminal("-c", textwrap.dedent(WORK), TERM="dumb") as shown:
        shown.read_until("compilescope: fix: running, ")
        shown.end()
    assert "\x1b" not in shown.text


def test_lines_elsewhere_now_and_then() -> None:
    words = [sys.executable, "-c", textwrap.dedent(WORK)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None and process.stdin is not None
        assert process.stderr.readline().startswith("compilescope: fix: running, ")
        process.stdin.write('work.show("a.py:3 print\\x1b[31m", 1, 4); work.tell("a\\nfix")\n')
        process.stdin.flush()
        lines = iter(process.stderr.readline, "")
        assert any(line.startswith("compilescope: fix: a fix, ") for line in lines)
        now = process.stderr.readline()
        assert now.startswith("compilescope: fix: 1 of 4: a.py:3 print\\x1b[31m, ")
        stdout, _ = process.communicate()
    assert stdout == "the answer\n"


@pytest.mark.parametrize("patience_s", [0, 600])
def test_what_is_said_comes_at_once(patience_s: float, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the work was too short for any other line."""
    with working("fix", "running", patience_s=patience_s, every_s=600) as work:
        work.say("a.py:3: verified")
        work.say("b.py:4: verified")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"compilescope: fix: {name}: verified, 0 s" for name in ("a.py:3", "b.py:4")]


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_short_work_says_nothing(
    stream: io.StringIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    with working("logs", "reading", patience_s=600, every_s=600) as work:
        work.percent(1, 2)
    assert stream is None or stream.getvalue() == ""


def test_a_closed_stderr_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr("sys.stderr", stream)
    with working("logs", "reading", every_s=0):
        pass


def test_how_much_is_done() -> None:
    work = CurrentWork("logs", "reading")
    assert (work.words(), work.share) == ("reading", None)
    work.percent(1, 3)
    assert (work.words(), work.share) == ("33%: reading", 1 / 3)
    work.percent(0, 0)
    assert work.share == 1.0
    work.shrink("90 -> 45 tokens", 0.5)
    assert (work.words(), work.share) == ("90 -> 45 tokens", 0.5)
    work.show("timing")
    assert (work.words(), work.share) == ("timing", None)


def test_durations() -> None:
    assert [duration(s) for s in (0.9, 59, 80, 3600)] == ["0 s", "59 s", "1 min 20 s", "1 h 0 min"]
