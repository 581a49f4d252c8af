"""A command of the tour as a child process: its output, and how far it is while it runs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from compilescope.demo.step import Command, CommandResult
from compilescope.processes.child import end_process
from compilescope.settings import fresh_environment

_PROGRESS = re.compile(
    r"compilescope: (?:fix|minify|diff|run|check|preflight|logs|report): (.+), .+ (?:s|min)"
)
"""What our commands write now and then while they work, without the time it ends with."""
_PATIENCE_S = 5.0
"""How long a command may take to end after Ctrl-C. Chosen: then it is killed."""


def run_command(
    command: Command, folder: Path, more: Mapping[str, str], heard: Callable[[str], None]
) -> CommandResult:
    """Run it to its end in `folder`; `heard` gets its progress. `more` joins its environment."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            _argv(command.words),
            cwd=folder,
            env=_environment(command, more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors if command.document else subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            # Ctrl-C is for us; and what it starts can be ended with it.
            start_new_session=True,
        )
        try:
            output = _read(process, heard)
            status = process.wait()
        finally:
            _end(process)
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    return CommandResult(command, status, time.monotonic() - began, output, said)


def _read(process: subprocess.Popen[str], heard: Callable[[str], None]) -> str:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        progress = _PROGRESS.fullmatch(line.rstrip("\n"))
        if progress:
            heard(progress[1])
        else:
            lines.append(line)
    return "".join(lines)


def _argv(words: tuple[str, ...]) -> list[str]:
    """With this interpreter: the tour must not depend on what PATH holds."""
    ours = {"python": [sys.executable], "compilescope": [sys.executable, "-m", "compilescope"]}
    return [*ours[words[0]], *words[1:]]


def _environment(command: Command, more: Mapping[str, str]) -> dict[str, str]:
    return {
        **fresh_environment(),
        # A child that buffers its own stdout would show it after our summary on stderr.
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8",
        **more,
        **dict(command.environment),
    }


def _end(process: subprocess.Popen[str]) -> None:
    """Whatever happened: nothing that it started goes on."""
    if process.poll() is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGINT)
    end_process(process, _PATIENCE_S)
    if process.stdout is not None:
        process.stdout.close()
