"""What a commit holds in place of the files of the working tree. git is only asked: nothing in the
repository is written, and nothing is checked out.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from compilescope.base.errors import ToolError
from compilescope.base.texts import one_line

_PATIENCE_S = 120.0
"""For one answer of git. Chosen: a large repository on a slow disk takes some seconds."""
_SUBMODULE = "160000"
_LINK = "120000"


@dataclass(frozen=True)
class CommitFiles:
    """Where a commit differs from the working tree. Paths are absolute."""

    name: str
    """As the user gave it."""
    texts: dict[str, bytes]
    """What the commit has in these files."""
    absent: frozenset[str]
    """Files that it does not have."""


def top_of(folder: str) -> str:
    """The top of the working tree that holds the folder."""
    try:
        return os.path.realpath(_git(folder, "rev-parse", "--show-toplevel").decode().rstrip("\n"))
    except subprocess.CalledProcessError:
        raise ToolError(f"{folder} is not in a git repository.") from None


def commits_of(folder: str, wanted: str) -> tuple[str, str | None]:
    """The two that `REV`, `A..B` or `A...B` names; None: the working tree."""
    if "..." in wanted:
        old, _, new = wanted.partition("...")
        old, new = _commit(folder, old or "HEAD"), _commit(folder, new or "HEAD")
        try:
            return _git(folder, "merge-base", old, new).decode().strip(), new
        except subprocess.CalledProcessError:
            raise ToolError(f"The commits of {wanted} have no common ancestor.") from None
    old, dots, new = wanted.partition("..")
    if not dots:
        return _commit(folder, old), None
    return _commit(folder, old or "HEAD"), _commit(folder, new or "HEAD")


def read_commit(top: str, commit: str, name: str) -> CommitFiles:
    """Raises `ToolError` where something differs that cannot be put in the place of a file."""
    texts: dict[str, bytes] = {}
    absent: set[str] = set()
    listed = _git(top, "diff", "--raw", "-z", "--no-renames", "--abbrev=64", commit, "--")
    entries = listed.decode("utf-8", "surrogateescape").split("\0")
    for about, path in zip(entries[::2], entries[1::2], strict=False):
        modes, status = about.lstrip(":").split()[:2], about[-1]
        full = os.path.join(top, path)
        if _SUBMODULE in modes:
            raise ToolError(
                f"{one_line(path)} is a submodule that differs from {name}: submodules cannot be "
                "compared."
            )
        if _LINK in modes and path.endswith(".py"):
            raise ToolError(f"{one_line(path)} is or was a symbolic link in {name}.")
        if status == "A":
            absent.add(full)
        elif path.endswith(".py"):
            texts[full] = _git(top, "cat-file", "blob", f"{commit}:{path}")
        else:
            texts[full] = b""
    others = _git(top, "ls-files", "--others", "--exclude-standard", "-z", "--", "*.py")
    absent |= {
        os.path.join(top, p) for p in others.decode("utf-8", "surrogateescape").split("\0")[:-1]
    }
    return CommitFiles(name, texts, frozenset(absent))


def _commit(folder: str, name: str) -> str:
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    try:
        return _git(folder, *words).decode().strip()
    except subprocess.CalledProcessError:
        raise ToolError(f"git knows no commit {one_line(name)}.") from None


def _git(folder: str, *words: str) -> bytes:
    command = ["git", "--no-optional-locks", "-C", folder, *words]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_PATIENCE_S, stdin=subprocess.DEVNULL, check=True
        )
    except FileNotFoundError:
        raise ToolError("git is not installed, and --git needs it.") from None
    except subprocess.TimeoutExpired:
        raise ToolError(f"git gave no answer within {_PATIENCE_S:g} s.") from None
    return done.stdout
