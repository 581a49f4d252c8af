"""A verified fix into the user's files: at the end of a search, or later from its run.

Only what was verified, only together, and only onto the texts that it was verified on.
"""

from __future__ import annotations

import os
import shlex
import threading
import tokenize
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from compilescope.errors import ToolError
from compilescope.fixes.stored import StoredFix
from compilescope.model.fix_search import FixedFile
from compilescope.model.provenance import is_fix_found_here
from compilescope.model.stack import origin_of
from compilescope.repair.delivery.file_changes import write_files
from compilescope.repair.delivery.repository import standing_of

Check = Callable[[str], object]
"""Raises `ToolError` for a file that may not be changed from here."""
State = Literal["ready", "applied", "changed", "missing", "not yours", "not allowed"]
BY_HAND = "Git may not have the old version of every file. To undo, reverse the diff."
_COMMIT = "Commit or stash first, or add --force."
_BUSY = threading.Lock()


@dataclass(frozen=True)
class AppliedFix:
    """What was written."""

    written: tuple[str, ...] = ()
    """Empty: the files had the fix already, or none needs to change."""
    undo: str = ""
    """How git takes it back; empty where it cannot."""
    remarks: tuple[str, ...] = ()
    already: bool = False


@dataclass(frozen=True)
class FileState:
    """Whether a file is still as a fix needs it."""

    path: str
    state: State
    words: str = ""
    """Why it cannot be changed."""


def check_git(files: Collection[str], hint: str = _COMMIT) -> None:
    """Raises `ToolError` where a change could not be taken back with git."""
    own = [file for file in files if file and origin_of(file) == "user"]
    objection = standing_of(own).objection
    if objection:
        raise ToolError(f"Nothing was written: {objection}.", hint=hint)


def write_fix(
    files: Mapping[str, str],
    originals: Mapping[str, str],
    environment: Mapping[str, str],
    *,
    force: bool,
    folder: str = "",
    hint: str = _COMMIT,
) -> AppliedFix:
    """The files, which are the user's own, get their new texts; `folder`: for whom the way back is
    not written from the current one."""
    remarks = [start_with(environment)] if environment else []
    if not files:
        return AppliedFix(remarks=tuple(remarks))
    if not force:
        check_git(files, hint)
    standing = standing_of(files)
    written = write_files(files, originals)
    undo = ""
    if standing.kept and not standing.objection:
        where = ["-C", folder] if folder else []
        names = [os.path.relpath(path, folder or None) for path in written]
        undo = shlex.join(["git", *where, "checkout", "--", *names])
    else:
        remarks.append(BY_HAND)
    return AppliedFix(tuple(written), undo, tuple(remarks))


def start_with(environment: Mapping[str, str]) -> str:
    setting = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
    return f"Start the program with {setting}."


def apply_stored(
    fix: StoredFix,
    *,
    force: bool,
    check: Check | None = None,
    folder: str = "",
    hint: str = _COMMIT,
) -> AppliedFix:
    """Raises `ToolError`, with nothing changed, for whatever stands against it."""
    check_stored(fix)
    with _BUSY:  # Two requests at once would write the same files side by side.
        states = file_states(fix, check)
        if fix.files and all(each.state == "applied" for each in states):
            remarks = (start_with(fix.outcome.environment),) if fix.outcome.environment else ()
            return AppliedFix(remarks=remarks, already=True)
        for each in states:
            if each.state != "ready":
                raise ToolError(f"{each.words} Nothing was written.", hint=_hint(each.state))
        return write_fix(
            fix.texts,
            fix.originals,
            fix.outcome.environment,
            force=force,
            folder=folder,
            hint=hint,
        )


def check_origin(fix: StoredFix, folder: Path, run: str) -> None:
    """Raises `ToolError` where the changes are not those of a search that was made here: they are
    code, and anyone may have put them into a run."""
    if fix.files and not is_fix_found_here(folder, run, fix.outcome.verdict, fix.changes):
        raise ToolError(
            f"The fix in run {run} is not known to come from your search, so it is not applied.",
            hint="Search for it here: `compilescope fix SCRIPT [ARGS]...`.",
        )


def check_stored(fix: StoredFix) -> None:
    """Raises `ToolError` where there is nothing that could be applied."""
    if not fix.whole:
        raise ToolError("The changes of this fix are missing from its run, redacted or damaged.")
    if not fix.verified:
        why = f": {fix.outcome.reason}" if fix.outcome.reason else ""
        raise ToolError(f"This search verified no fix{why}, so there is nothing to apply.")


def file_states(fix: StoredFix, check: Check | None = None) -> list[FileState]:
    """How each file of the fix stands now."""
    return [_state(file, check) for file in fix.files]


def _state(file: FixedFile, check: Check | None) -> FileState:
    path = file.path
    # A run may come from elsewhere: its paths are anybody's.
    if not os.path.isabs(path) or "\0" in path:
        return FileState(path, "missing", f"{path!r} is not the path of a file here.")
    if not os.path.isfile(path):
        return FileState(path, "missing", f"{path} no longer exists.")
    real = os.path.realpath(path)
    if origin_of(path) != "user" or origin_of(real) != "user":
        return FileState(path, "not yours", f"{path} is not your file.")
    try:
        if check is not None:
            check(path)
    except ToolError as error:
        return FileState(path, "not allowed", error.message)
    try:
        with tokenize.open(path) as stream:  # As Python reads it; all line ends are one.
            now = stream.read()
    except (OSError, SyntaxError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "it is not Python source"
        return FileState(path, "changed", f"{path} can't be read: {why}.")
    if now == _plain(file.fixed):
        return FileState(path, "applied", f"{path} already has the fix, but other files don't.")
    if now == _plain(file.original):
        return FileState(path, "ready")
    return FileState(path, "changed", f"{path} changed since the fix was verified.")


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _hint(state: State) -> str:
    if state == "not yours":
        return "Use `compilescope fix --script`: it includes changes to installed packages."
    return "" if state == "not allowed" else "Search for fixes again."
