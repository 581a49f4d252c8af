"""What git says of files that are to be changed: could their user get the old text back?"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

_PATIENCE_S = 60.0
"""For one command of git. Chosen: more than a slow disk needs; past it, git counts as unable to
tell, and that is an objection."""


@dataclass(frozen=True)
class GitStanding:
    """How some files stand with git."""

    kept: bool
    """All of them are in a repository."""
    objection: str = ""
    """Why they had better not be changed; empty where git keeps all that would be lost."""


def standing_of(files: Collection[str]) -> GitStanding:
    """Untracked files elsewhere in the tree do not matter; a change of a tracked one does, and so
    does a file that is itself not committed."""
    kept = True
    for folder, members in _by_repository(files).items():
        if not folder:
            kept = False
            continue
        objection = _objection(folder, members)
        if objection:
            return GitStanding(kept, objection)
    return GitStanding(kept)


def _by_repository(files: Collection[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for file in sorted(files):
        path = Path(os.path.realpath(file))
        # A worktree and a submodule have a file of that name.
        above = (folder for folder in path.parents if (folder / ".git").exists())
        found.setdefault(str(next(above, "")), []).append(str(path))
    return found


def _objection(folder: str, files: list[str]) -> str:
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "-z")
    if changed is None:
        return f"git could not check {folder} for uncommitted changes"
    names = [entry[3:] for entry in changed.split("\0") if len(entry) > 3]
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"the git tree in {folder} has uncommitted changes: {names[0]}{more}"
    for file in files:
        known = _git(folder, "ls-files", "-z", "--", file)
        if not known:
            return f"{os.path.relpath(file, folder)} is not committed to git"
    return ""


def _git(folder: str, *words: str) -> str | None:
    """What git prints; None where it fails."""
    command = ["git", "--no-optional-locks", "-C", folder, *words]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_PATIENCE_S, stdin=subprocess.DEVNULL, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")
