"""A script is handed out only after a fresh process has shown the same cause, by both accounts.

By its own: run with plain Python, it concludes that the bug is present. And by ours: under capture,
in a new interpreter, it shows a cause with the same key (of a crash, the program in it that it
looks at).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from compilescope.minify.script.ending import shows_bug
from compilescope.minify.source.causes import SourceCause
from compilescope.minify.source.messages import TrialResult
from compilescope.minify.source.program_sandbox import (
    ProgramFiles,
    ProgramSandbox,
    find_cause,
    lay_out,
)
from compilescope.processes.child import run_within
from compilescope.processes.deadline import Deadline, OutOfTime
from compilescope.settings import fresh_environment

_START_S = 120.0
"""For importing torch, beside the time of a candidate. Chosen: more than a busy machine takes."""
_LAST_WORDS = 3
"""Lines of its output in the reason: enough for an error and its line."""


def why_not(
    script: str,
    program: str,
    cause: SourceCause,
    surroundings: ProgramFiles,
    limit_s: float,
    deadline: Deadline,
) -> str:
    """Why it is no repro of what `program` shows; empty if it is one. Raises `OutOfTime`."""
    # The script lives through the crash that it tells of.
    shows = program if cause.kind == "crash" else script
    return _alone(script, surroundings, limit_s, deadline) or _captured(
        shows, cause, surroundings, limit_s, deadline
    )


def _alone(script: str, surroundings: ProgramFiles, limit_s: float, deadline: Deadline) -> str:
    with tempfile.TemporaryDirectory(
        prefix="compilescope-repro-", ignore_cleanup_errors=True
    ) as folder:
        lay_out(surroundings.files, Path(folder))
        path = Path(folder, "repro.py")
        path.write_text(script, encoding="utf-8")
        env = fresh_environment()
        env["PYTHONPATH"] = ":".join([*surroundings.paths, env["PYTHONPATH"]])
        try:
            done = run_within(
                [sys.executable, str(path)],
                deadline.limit(limit_s + _START_S),
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
        except subprocess.TimeoutExpired:
            if deadline.is_over:
                raise OutOfTime from None
            return (
                f"on its own in a fresh process it did not finish within {limit_s + _START_S:g} s"
            )
    if shows_bug(done.returncode, done.stderr.decode(errors="replace").splitlines()):
        return ""
    said = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
    words = " / ".join(said[-_LAST_WORDS:]) or "no message"
    return f"on its own in a fresh process it exited with {done.returncode} ({words})"


def _captured(
    script: str, cause: SourceCause, surroundings: ProgramFiles, limit_s: float, deadline: Deadline
) -> str:
    with ProgramSandbox(
        surroundings, limit_s=limit_s, memory_bytes=None, fork=False, deadline=deadline
    ) as stage:
        seen = stage.look(script)
    if not isinstance(seen, TrialResult):
        return f"under capture in a fresh process the result was {seen}"
    if find_cause(seen, cause) is None:
        return "under capture in a fresh process it did not show the same cause"
    return ""
