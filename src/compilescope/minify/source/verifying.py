"""A script is handed out only after a fresh process has shown the same cause, by both accounts.

By its own: run with plain Python, it leaves with status 1. And by ours: under capture, in a new
interpreter, it shows a cause with the same key (of a crash, the program in it that it looks at).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from compilescope.minify.source.causes import Cause
from compilescope.minify.source.messages import Seen
from compilescope.minify.source.stage import Stage, Surroundings, find_cause, lay_out
from compilescope.settings import fresh_environment

_START_S = 120.0
_LAST_WORDS = 3


def why_not(
    script: str, program: str, cause: Cause, surroundings: Surroundings, limit_s: float
) -> str:
    """Why it is no repro of what `program` shows; empty if it is one."""
    # The script lives through the crash that it tells of.
    shows = program if cause.kind == "crash" else script
    return _alone(script, surroundings, limit_s) or _captured(shows, cause, surroundings, limit_s)


def _alone(script: str, surroundings: Surroundings, limit_s: float) -> str:
    with tempfile.TemporaryDirectory(
        prefix="compilescope-repro-", ignore_cleanup_errors=True
    ) as folder:
        lay_out(surroundings.files, Path(folder))
        path = Path(folder, "repro.py")
        path.write_text(script, encoding="utf-8")
        env = fresh_environment()
        env["PYTHONPATH"] = ":".join([*surroundings.paths, env["PYTHONPATH"]])
        try:
            done = subprocess.run(
                [sys.executable, str(path)],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=limit_s + _START_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return (
                f"on its own in a fresh process it did not finish within {limit_s + _START_S:g} s"
            )
    if done.returncode == 1 and b" is present." in done.stdout:
        return ""
    said = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
    words = " / ".join(said[-_LAST_WORDS:]) or "no message"
    return f"on its own in a fresh process it exited with {done.returncode} ({words})"


def _captured(script: str, cause: Cause, surroundings: Surroundings, limit_s: float) -> str:
    with Stage(surroundings, limit_s=limit_s, memory_bytes=None, fork=False) as stage:
        seen = stage.look(script)
    if not isinstance(seen, Seen):
        return f"under capture in a fresh process the result was {seen}"
    if find_cause(seen, cause) is None:
        return "under capture in a fresh process it did not show the same cause"
    return ""
