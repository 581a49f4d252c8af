"""Writes a repro script, and keeps it only if a fresh process shows the same problem with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compilescope.base.processes.child import run_within
from compilescope.base.processes.cleaner import transient
from compilescope.base.settings import fresh_environment
from compilescope.change.minify.script.conclusion import FIXED, shows_bug


@dataclass(frozen=True)
class ReproResult:
    """A script, or why there is none."""

    path: Path | None = None
    reason: str = ""
    """With a path: why no fresh process has verified it."""

    @property
    def words(self) -> str:
        if self.path is None:
            return f"No repro: {self.reason}."
        if self.reason:
            return f"Repro, not verified in a fresh process ({self.reason}): {self.path}"
        return f"Repro, verified in a fresh process: {self.path}"


def write_verified(
    path: Path,
    text: str,
    *,
    timeout_s: float,
    beside: Callable[[Path], None] | None = None,
    check: Callable[[Path, float], str] | None = None,
    late: Callable[[], bool] | None = None,
) -> ReproResult:
    """Write `text`, run it, and let it have its name only if it deserves it.

    `beside(folder)` writes files that the script reads. `check` says why it is no repro; by
    default it must end as a script that shows its bug. Where it fails and `late()` says that there
    was no time for it, the script is kept, and the reason with it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with transient(path.with_name(f".{path.stem[:100]}-{os.getpid()}.unverified.py")) as draft:
            draft.write_text(text, encoding="utf-8")
            if beside is not None:
                beside(path.parent)
            failure = (check or why_not_shown)(draft, timeout_s)
            if failure and late is not None and late():
                draft.replace(path)
                return ReproResult(path, "the time limit ended the check")
            if failure:
                return ReproResult(reason=failure)
            draft.replace(path)
    except OSError as error:
        return ReproResult(reason=f"{path.parent} cannot be written ({error.strerror})")
    return ReproResult(path)


def why_not_shown(script: Path, timeout_s: float) -> str:
    """Why it is no repro; empty if it shows its bug."""
    status, said = run_fresh([sys.executable, str(script)], timeout_s)
    if status is None:
        return too_late(timeout_s)
    last = said[-1] if said else "no message"
    if status == FIXED:
        return "in a fresh process the script does not reproduce it"
    return "" if shows_bug(status, said) else f"the script failed in a fresh process ({last})"


def too_late(timeout_s: float) -> str:
    """Why nothing is known of a script that did not end in time."""
    if timeout_s < 1:
        return "no time was left to verify it"
    return f"it could not be verified within {timeout_s:.0f} s"


def run_fresh(command: list[str], timeout_s: float) -> tuple[int | None, list[str]]:
    """The exit status, None if it took too long; and the lines on stderr."""
    try:
        done = run_within(
            command,
            timeout_s,
            env=fresh_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    except subprocess.TimeoutExpired:
        return None, []
    return done.returncode, done.stderr.decode(errors="replace").strip().splitlines()
