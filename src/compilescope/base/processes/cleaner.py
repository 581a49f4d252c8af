"""Nothing of a command outlives it: no process, no temporary folder, no file half written.

`cleaner_process` sees to it when the command itself no longer can.

with leaving_nothing():
    ...
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import secrets
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from compilescope.base.errors import ToolError, as_limit
from compilescope.base.processes import cleaner_process
from compilescope.base.processes.cleaner_process import LOCK, PREFIX, remove, restore
from compilescope.base.settings import JOURNALS, current_environment, set_variable, state_folder

_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37  # linux/prctl.h.
_REAP_S, _ROUND_S = 2.0, 0.2
"""To end children, in all and each round. Chosen: what is killed goes at once, unless it hangs in
the kernel, and then nothing helps."""
_LEAVE_S = 20.0
"""For the cleaner to end. Chosen: above the 10 s that it gives itself to end processes."""
_SOCKET_FITS = 70
"""Sockets are named by paths of 104 characters at most, of which multiprocessing needs 34."""
_MOST_LINKS = 2000
"""Chosen: a bound for temporary folders that nobody empties; each link costs a system call."""


class _CleanerPipe:
    """Our end of the cleaner's pipe."""

    def __init__(self) -> None:
        self.token = secrets.token_hex(8)
        self.pid = os.getpid()
        self.usual = _temporary_folder()
        """Where temporary files go that are to stay."""
        needed = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
        around = {k: v for k, v in current_environment().items() if k in needed}
        command = [sys.executable, "-I", "-S", cleaner_process.__file__, self.token, str(self.pid)]
        try:
            self._process = subprocess.Popen(
                command,
                env=around,
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            # Without it nothing is promised, and what follows could not be started either.
            reason = f"Cannot start {sys.executable}: {error.strerror}."
            raise as_limit(error) or ToolError(reason) from None

    @property
    def own_pid(self) -> int:
        return self._process.pid

    def say(self, what: str, value: str = "") -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            line = json.dumps([what, value]).encode() + b"\n"
            os.write(self._process.stdin.fileno(), line)

    def leave(self) -> None:
        """When it has ended, all is clean."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LEAVE_S)


def _temporary_folder() -> str:
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:  # It has tried to write into each of the usual ones.
        hint = "Set TMPDIR to a folder on a disk with space."
        raise ToolError("There is no temporary folder to write to.", hint) from None


_mine: _CleanerPipe | None = None


@contextlib.contextmanager
def leaving_nothing() -> Iterator[tuple[int, ...]]:
    """For the length of a command; one within another adds nothing. Gives the cleaner's process."""
    global _mine
    if _present() is not None or not _is_possible():
        yield ()
        return
    before = children()
    cleaner = _mine = _CleanerPipe()
    try:
        with _adopting(), _temporary(cleaner), _marked(cleaner):
            try:
                yield (cleaner.own_pid,)
            finally:
                end_children((*before, cleaner.own_pid))
                cleaner.say(
                    "end"
                )  # Not where a second Ctrl-C came before: the cleaner ends the rest.
    finally:
        _mine = None
        cleaner.leave()


def _is_possible() -> bool:
    """What it changes for a while is the whole process'."""
    in_main = threading.current_thread() is threading.main_thread()
    return os.name == "posix" and in_main


def _present() -> _CleanerPipe | None:
    return _mine if _mine is not None and _mine.pid == os.getpid() else None


@contextlib.contextmanager
def _temporary(cleaner: _CleanerPipe) -> Iterator[None]:
    """All temporary files of ours, and of what we start, are in one folder, which goes."""
    root = os.path.join(cleaner.usual, f"{PREFIX}{secrets.token_hex(4)}")
    cleaner.say("keep", root)  # First: there is no moment at which it is nobody's.
    cleaner.say("stale", cleaner.usual)
    before = tempfile.tempdir
    try:
        try:
            os.mkdir(root, 0o700)
        except OSError as error:
            raise ToolError(f"Cannot write {cleaner.usual}: {error.strerror}.") from None
        with _locked(os.path.join(root, LOCK), cleaner.token):
            tempfile.tempdir = root
            yield
    finally:
        tempfile.tempdir = before
        remove(root)


@contextlib.contextmanager
def _locked(path: str, token: str) -> Iterator[None]:
    """As long as the lock is held, whoever looks for remains lets it be; it says what our processes
    are known by."""
    with open(f"{path}.new", "wb") as file:
        _lock(file)
        file.write(token.encode())
        file.flush()
        os.rename(file.name, path)  # It is never seen without its lock.
        yield


def _lock(file: IO[bytes]) -> None:
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def _marked(cleaner: _CleanerPipe) -> Iterator[None]:
    """Processes that are started now are known by their environment, whatever becomes of them."""
    changes = {cleaner_process.VARIABLE: cleaner.token}
    place = os.path.join(tempfile.gettempdir(), "tmp")
    # Sockets must not fail for us; where they fail without us too, it makes no difference.
    if len(place) <= _SOCKET_FITS or len(cleaner.usual) > _SOCKET_FITS:
        os.mkdir(place, 0o700)
        _link(cleaner.usual, place)
        changes |= {"TMPDIR": place, **_inductor_cache(cleaner.usual)}
    before = current_environment()
    try:
        for name, value in changes.items():
            set_variable(name, value)
        yield
    finally:
        for name in changes:
            set_variable(name, before.get(name))


def _link(usual: str, place: str) -> None:
    """A program finds the files that it had put into the temporary folder; what it adds goes with
    ours. Not folders: Python refuses to empty one through a link, and programs do that."""
    with contextlib.suppress(OSError):
        owner, made = os.getuid(), 0
        for entry in os.scandir(usual):
            with contextlib.suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                own = found.st_uid == owner and stat.S_ISREG(found.st_mode)
                if own and made < _MOST_LINKS:
                    os.symlink(entry.path, os.path.join(place, entry.name))
                    made += 1


def _inductor_cache(usual: str) -> dict[str, str]:
    """Where torch 2.11 to 2.15 keep it by default: what the user has compiled before is found by
    the same name. Where there is none yet, none is left."""
    import getpass

    name = "TORCHINDUCTOR_CACHE_DIR"
    with contextlib.suppress(OSError, KeyError):
        user = re.sub(r'[\\/:*?"<>|]', "_", getpass.getuser())
        cache = os.path.join(usual, f"torchinductor_{user}")
        if os.path.isdir(cache) and name not in current_environment():
            return {name: cache}
    return {}


def lasting_folder() -> str:
    """The user's temporary folder: for what is to be read after the command has ended."""
    cleaner = _present()
    return cleaner.usual if cleaner is not None else tempfile.gettempdir()


@contextlib.contextmanager
def claimed(folder: str) -> Iterator[None]:
    """A temporary folder of a command that has no cleaner: if it is killed, that of a later one
    removes it."""
    with _locked(os.path.join(folder, LOCK), ""):
        yield


@contextlib.contextmanager
def transient(path: Path) -> Iterator[Path]:
    """A file or folder that must not outlive the command, wherever it is."""
    cleaner = _present()
    if cleaner is not None:
        cleaner.say("keep", os.path.abspath(path))
    try:
        yield path
    finally:
        remove(str(path))
        if cleaner is not None:
            cleaner.say("drop", os.path.abspath(path))


@dataclass(frozen=True)
class FileChange:
    """A file that is about to be replaced."""

    path: Path
    part: Path
    """Where its new bytes are prepared."""
    old: bytes | None
    """None: it was not there."""
    new: bytes


@contextlib.contextmanager
def journal(changes: Sequence[FileChange]) -> Iterator[None]:
    """Until it is left, the death of the process takes all of them back: at once by the cleaner, or
    at the next start of the tool."""
    place = _journal_folder(changes[0].path.parent)
    path = place / f".{PREFIX}{secrets.token_hex(6)}.journal"
    data = json.dumps({"files": [_entry(each) for each in changes]}).encode()
    cleaner = _present()
    with transient(path.with_suffix(".part")) as part, open(part, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        _lock(file)
        os.replace(part, path)
        if cleaner is not None:
            cleaner.say("journal", str(path))
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            if cleaner is not None:
                cleaner.say("done", str(path))


def _entry(change: FileChange) -> dict[str, Any]:
    def coded(data: bytes | None) -> str | None:
        return None if data is None else base64.b64encode(data).decode()

    paths = {"path": os.path.abspath(change.path), "part": os.path.abspath(change.part)}
    return {**paths, "old": coded(change.old), "new": coded(change.new)}


def _journal_folder(beside: Path) -> Path:
    """Where the next start looks; where that cannot be written, the cleaner alone knows of it."""
    folder = state_folder() / JOURNALS
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return beside
    return folder.absolute() if os.access(folder, os.W_OK) else beside.absolute()


def restore_interrupted() -> list[str]:
    """Take back what a process that died had begun to write: the files that were."""
    found = map(str, (state_folder() / JOURNALS).glob(".*.journal"))
    return [file for path in found if cleaner_process.is_free(path) for file in restore(path)]


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    before = _is_adopting()
    adopt_orphans()
    try:
        yield
    finally:
        adopt_orphans(before)


def _is_adopting() -> bool:
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        value = ctypes.c_int(0)
        ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(value))
        return bool(value.value)
    return False


@contextlib.contextmanager
def without_strays() -> Iterator[None]:
    """Daemons that one run of a program leaves are not there in the next. With a cleaner alone:
    only then are they ours, and nobody else starts processes meanwhile."""
    if _present() is None:
        yield
        return
    before = children()
    try:
        yield
    finally:
        end_children(before)


def adopt_orphans(wanted: bool = True) -> None:
    """Children of children that lose their parent become ours, so that we find them."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(wanted))


def children() -> frozenset[int]:
    """Of this process, ended ones that wait to be reaped included."""
    listed: list[Path] = []
    found: set[int] = set()
    # Twice: what a thread started that ends meanwhile goes over to one that was read already.
    for _ in range(2):
        listed = list(Path("/proc/self/task").glob("*/children"))
        for path in listed:
            with contextlib.suppress(OSError):  # A thread that has just ended has none.
                found.update(map(int, path.read_bytes().split()))
    if not listed:  # Some kernels are built without these files.
        import psutil

        with contextlib.suppress(psutil.Error):
            found.update(child.pid for child in psutil.Process().children())
    return frozenset(found)


def end_children(but: Iterable[int]) -> None:
    """End the children that came since, with all that they started, until none is left."""
    from compilescope.base.processes.child import (
        end_session,  # Every writer of a file imports this module.
    )

    until = time.monotonic() + _REAP_S
    spared = frozenset(but)
    # First those that only wait to be reaped: some programs leave hundreds.
    while (left := _unreaped(children() - spared)) and time.monotonic() < until:
        for pid in left:
            end_session(pid, running=True)
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        _reap(left, min(until, time.monotonic() + _ROUND_S))


def _reap(pids: Iterable[int], until: float) -> None:
    """What we killed is gone in a moment, and its own children are ours then. All at once: there
    may be hundreds, and on a busy machine each takes its time."""
    while (pids := _unreaped(pids)) and time.monotonic() < until:
        time.sleep(0.001)


def _unreaped(pids: Iterable[int]) -> set[int]:
    return {pid for pid in pids if not _is_reaped(pid)}


def _is_reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True
