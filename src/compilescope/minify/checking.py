"""A command of the user's as the judge: status 0 means that the file is interesting.

It gets the candidate's path as its last argument, in a scratch folder where the file has its own
name. It runs in a session of its own, and all of that ends with it or with the time limit.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from compilescope.errors import ToolError
from compilescope.minify.answers import Outcome
from compilescope.minify.engine import Limits, Pass, Reduction, reduce
from compilescope.minify.source.candidate import parse
from compilescope.minify.source.minimising import all_passes
from compilescope.minify.texts import TEXT_PASSES, TextCandidate


class CommandCheck:
    """Judges files by a command."""

    def __init__(self, command: str, name: str, limit_s: float) -> None:
        self.words = _words(command)
        self._name = name
        self._limit_s = limit_s

    def __call__(self, candidate: Any) -> Outcome:
        return self.judge(candidate.text())

    def judge(self, text: str) -> Outcome:
        with tempfile.TemporaryDirectory(
            prefix="compilescope-check-", ignore_cleanup_errors=True
        ) as folder:
            path = Path(folder, self._name)
            path.write_bytes(text.encode("utf-8", "surrogateescape"))
            process = subprocess.Popen(
                [*self.words, str(path)],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Ctrl-C is for us; and what it starts can be ended with it.
                start_new_session=True,
            )
            try:
                status = process.wait(self._limit_s)
            except subprocess.TimeoutExpired:
                return "timeout"
            finally:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if status < 0:
            return "crashed"
        return "kept" if status == 0 else "lost"


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ToolError(f"--check {command!r} cannot be parsed: {error}.") from None
    if not words:
        raise ToolError("--check needs a command.")
    found = shutil.which(words[0])
    if found is None:
        hint = "Make it executable with: chmod +x" if os.path.exists(words[0]) else ""
        raise ToolError(f"--check: there is no command {words[0]}.", hint=hint)
    # It runs in another folder: its own files are named from here.
    rest = [os.path.abspath(word) if os.path.exists(word) else word for word in words[1:]]
    return [os.path.abspath(found), *rest]


def reduce_file(
    text: str,
    check: CommandCheck,
    *,
    jobs: int,
    state: Path | None,
    limits: Limits,
    progress: Any,
) -> Reduction[Any]:
    """As Python where it is Python, else as lines and words."""
    start: Any
    passes: list[Pass[Any]]
    try:
        start, passes = parse(text), list(all_passes())
    except ToolError:
        start, passes = TextCandidate(text), list(TEXT_PASSES)
    tell: Any = progress
    return reduce(
        start,
        passes,
        check,
        jobs=jobs,
        state=state,
        purpose=shlex.join(check.words),
        limits=limits,
        progress=tell,
    )


def read_any(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}.") from None
