"""The processes of `compilescope learn`: each lesson and each answer in a fresh one."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from compilescope.errors import ToolError
from compilescope.forking import kill_group
from compilescope.settings import fresh_environment

if TYPE_CHECKING:
    from compilescope.learn.answering import Verdict
    from compilescope.learn.lesson import Lesson

_GRACE_S = 5.0


def need_torch() -> None:
    if not _has_torch():
        raise ToolError(
            "Lessons run torch, which is not installed in this Python.",
            'Install it with: pip install "compilescope[torch]"',
        )


def _has_torch() -> bool:
    try:
        return importlib.util.find_spec("torch") is not None
    except ImportError:
        return False


def play_lesson(lesson: Lesson, *, step: bool = False) -> int:
    """Show and run it in a folder of its own, which is gone afterwards; its exit status."""
    command = [sys.executable, "-m", "compilescope.cli.learn_player", str(lesson.number)]
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="compilescope-learn-") as folder:
        # In our process group, so that it may ask the reader at the terminal.
        process = subprocess.Popen(
            [*command, *(["--step"] if step else [])], cwd=folder, env=fresh_environment()
        )
        try:
            return process.wait()
        except KeyboardInterrupt:
            _end(process)
            raise


def judge_file(lesson: Lesson, answer: Path, seconds: float) -> Verdict:
    """Run an answer and the lesson's check on it."""
    import msgspec

    from compilescope.learn.answering import Verdict

    command = [sys.executable, "-m", "compilescope.learn.answering", str(lesson.number)]
    with tempfile.TemporaryDirectory(prefix="compilescope-learn-") as folder:
        out = Path(folder, "verdict.json")
        process = subprocess.Popen(
            [*command, str(answer), str(out)],
            env=fresh_environment(),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return Verdict(error=f"{answer} did not finish within {seconds:g} seconds.")
        finally:
            kill_group(process.pid)
            process.wait()
        if not out.exists():
            return Verdict(error=f"{answer} ended its process with status {status}.")
        return msgspec.json.decode(out.read_bytes(), type=Verdict)


def _end(process: subprocess.Popen[bytes]) -> None:
    """It got the same Ctrl-C, if that was typed; if not, or if it lingers, it is told so."""
    process.terminate()
    try:
        process.wait(_GRACE_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()
