"""A script is handed out only after it showed the same thing in a fresh process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compilescope.settings import fresh_environment

BUG, FIXED, UNKNOWN = 1, 0, 2


@dataclass(frozen=True)
class Repro:
    """A script, or why there is none."""

    path: Path | None = None
    reason: str = ""

    @property
    def words(self) -> str:
        if self.path is None:
            return f"No repro: {self.reason}."
        return f"Repro, verified in a fresh process: {self.path}"


def write_verified(
    path: Path,
    text: str,
    *,
    timeout_s: float,
    beside: Callable[[Path], None] | None = None,
    check: Callable[[Path, float], str] | None = None,
) -> Repro:
    """Write `text`, run it, and let it have its name only if it deserves it.

    `beside(folder)` writes files that the script reads. `check` says why it is no repro; by
    default the exit status must be 1.
    """
    draft = path.with_suffix(".unverified.py")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        if beside is not None:
            beside(path.parent)
        failure = (check or exit_status_check)(draft, timeout_s)
        if failure:
            draft.unlink()
            return Repro(reason=failure)
        draft.replace(path)
    except OSError as error:
        return Repro(reason=f"{path.parent} cannot be written ({error.strerror})")
    return Repro(path)


def exit_status_check(script: Path, timeout_s: float) -> str:
    """Why it is no repro; empty if it leaves with status 1."""
    status, said = run_fresh([sys.executable, str(script)], timeout_s)
    if status is None:
        return f"it could not be verified within {timeout_s:g} s"
    last = said[-1] if said else "no message"
    if status == FIXED:
        return "in a fresh process the script does not reproduce it"
    return "" if status == BUG else f"the script failed in a fresh process ({last})"


def run_fresh(command: list[str], timeout_s: float) -> tuple[int | None, list[str]]:
    """The exit status, None if it took too long; and the lines on stderr."""
    try:
        done = subprocess.run(
            command,
            env=fresh_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, []
    return done.returncode, done.stderr.decode(errors="replace").strip().splitlines()
