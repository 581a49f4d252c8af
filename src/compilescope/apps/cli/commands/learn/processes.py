"""The processes of `compilescope learn`: each lesson and each answer in a fresh one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from compilescope.apps.cli.interpreters import has_torch
from compilescope.base.errors import ToolError
from compilescope.base.settings import fresh_environment

if TYPE_CHECKING:
    from compilescope.apps.learn.answer_process import AnswerVerdict
    from compilescope.apps.learn.lesson import Lesson

_GRACE_S = 5.0
"""Between terminate and kill. Chosen: time to clean up."""


def need_torch() -> None:
    if not has_torch():
        raise ToolError(
            "Lessons run torch, which is not installed in this Python.",
            'Install it with: pip install "compilescope[torch]"',
        )


def play_lesson(lesson: Lesson, *, step: bool = False) -> int:
    """Show and run it in a folder of its own, which is gone afterwards; its exit status."""
    player = "compilescope.apps.cli.commands.learn.player"
    command = [sys.executable, "-m", player, str(lesson.number)]
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


def judge_file(lesson: Lesson, answer: Path, seconds: float) -> AnswerVerdict:
    """Run an answer and the lesson's check on it."""
    import msgspec

    from compilescope.apps.learn.answer_process import AnswerVerdict
    from compilescope.base.processes.child import run_within

    command = [sys.executable, "-m", "compilescope.apps.learn.answer_process", str(lesson.number)]
    with tempfile.TemporaryDirectory(prefix="compilescope-learn-") as folder:
        out = Path(folder, "verdict.json")
        try:
            done = run_within(
                [*command, str(answer), str(out)],
                seconds,
                env=fresh_environment(),
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return AnswerVerdict(error=f"{answer} did not finish within {seconds:g} seconds.")
        if not out.exists():
            return AnswerVerdict(error=f"{answer} ended its process with status {done.returncode}.")
        return msgspec.json.decode(out.read_bytes(), type=AnswerVerdict)


def _end(process: subprocess.Popen[bytes]) -> None:
    """It got the same Ctrl-C, if that was typed; if not, or if it lingers, it is told so."""
    process.terminate()
    try:
        process.wait(_GRACE_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()
