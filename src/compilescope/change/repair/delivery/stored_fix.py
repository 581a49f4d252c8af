"""A verified fix into the user's files: at the end of a search, or later from its run; and what git
says of these files: could their user get the old text back?

Only what was verified, only together, and only onto the texts that it was verified on.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import threading
import tokenize
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from compilescope.base.errors import ToolError
from compilescope.base.processes.cleaner import FileChange, journal
from compilescope.change.fixes.stored import StoredFix, stored_fix
from compilescope.record.fix_search import FixedFile
from compilescope.record.provenance import is_fix_found_here
from compilescope.record.run import read_run
from compilescope.record.stack import origin_of

T = TypeVar("T")
_NEWLINE = re.compile(r"\r\n|\r|\n")
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


def read_own_fix(stored: Path) -> tuple[str, StoredFix]:
    """The name of the run in this folder, and the fix that a search of the user's verified. Raises
    `ToolError` where there is none."""
    run = read_run(stored)
    fix = stored_fix(run)
    name = run.header.run
    if fix is None:
        raise ToolError(
            f"Run {name} holds no fix to apply.",
            hint=f"Search for one with `compilescope fix --run {shlex.quote(name)}`.",
        )
    check_origin(fix, stored, name)
    return name, fix


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


# New texts into the user's files: all of them or none, each in one step.
#
# A file is written beside the old one and renamed onto it, so a reader never meets half of it. The
# renames follow each other with signals held back; if one fails, those before it are taken back.


@dataclass
class _Replacement:
    """One file, its new bytes beside it."""

    path: Path
    """The file itself, no link to it."""
    old: bytes
    new: bytes
    mode: int

    @property
    def part(self) -> Path:
        return self.path.with_name(f".{self.path.name}.{os.getpid()}.part")

    def prepare(self) -> None:
        _write_beside(self.part, self.new, self.mode)

    def commit(self) -> None:
        os.replace(self.part, self.path)

    def take_back(self) -> None:
        _write_beside(self.part, self.old, self.mode)
        os.replace(self.part, self.path)


def write_files(files: Mapping[str, str], originals: Mapping[str, str]) -> list[str]:
    """Put the texts in their places. Raises `ToolError`, with nothing changed, where a file is no
    longer the text that its new one was made from, or one of them cannot be written."""
    planned = [_planned(path, files[path], originals.get(path)) for path in sorted(files)]
    with _journalled(planned):
        try:
            for each in planned:
                _do(each.prepare, each.path)
            with _signals_held_back():
                _commit(planned)
        finally:
            for each in planned:
                with suppress(OSError):
                    each.part.unlink(missing_ok=True)
    return [str(each.path) for each in planned]


@contextmanager
def _journalled(planned: list[_Replacement]) -> Iterator[None]:
    """Killed in the middle, they are all taken back."""
    changes = [FileChange(each.path, each.part, each.old, each.new) for each in planned]
    with ExitStack() as stack:
        if changes:
            _do(lambda: stack.enter_context(journal(changes)), planned[0].path)
        yield


def _commit(planned: list[_Replacement]) -> None:
    done: list[_Replacement] = []
    try:
        for each in planned:
            # The last look: an editor may have saved it since.
            if _do(each.path.read_bytes, each.path) != each.old:
                raise ToolError(f"{each.path} changed in the meantime; nothing was written.")
            _do(each.commit, each.path)
            done.append(each)
    except BaseException:
        for each in done:
            each.take_back()
        raise


def _planned(path: str, text: str, original: str | None) -> _Replacement:
    place = Path(os.path.realpath(path))
    old = _do(place.read_bytes, place)
    if not os.access(place, os.W_OK):
        raise ToolError(f"Cannot write {place}: permission denied.")
    encoding = _encoding(old, place)
    try:
        now = old.decode(encoding)
        text = _with_newlines_of(now, original, text, place)
        new = text.encode(encoding)
    except UnicodeError:
        raise ToolError(f"Cannot write {place} in its encoding, {encoding}.") from None
    return _Replacement(place, old, new, place.stat().st_mode & 0o7777)


def _encoding(data: bytes, place: Path) -> str:
    """As Python reads it: by its mark or its `coding` comment; `utf-8-sig` keeps a mark."""
    try:
        return tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    except SyntaxError as error:
        raise ToolError(f"Cannot write {place}: {error}.") from None


def _with_newlines_of(now: str, original: str | None, text: str, place: Path) -> str:
    """The new text with the line ends that the file has, which must still be the original."""
    if original is None or now == original.removeprefix("\ufeff"):
        return text.removeprefix("\ufeff")
    ends = set(_NEWLINE.findall(now))
    if len(ends) == 1 and _NEWLINE.sub("\n", now) == _NEWLINE.sub("\n", original):
        return _NEWLINE.sub(ends.pop(), text)
    raise ToolError(
        f"{place} changed while its fix was being verified; nothing was written.",
        hint="Run `compilescope fix` again.",
    )


def _write_beside(part: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as stream:
        os.chmod(part, mode)
        stream.write(data)
        stream.flush()
        os.fsync(descriptor)


def _do(action: Callable[[], T], path: Path) -> T:
    try:
        return action()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ToolError(f"Cannot write {path}: {reason}; nothing was changed.") from None


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """Ctrl-C and the like come when all is done."""
    mask = getattr(signal, "pthread_sigmask", None)
    if mask is None:
        yield
        return
    before = mask(signal.SIG_BLOCK, signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
    try:
        yield
    finally:
        mask(signal.SIG_SETMASK, before)


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
