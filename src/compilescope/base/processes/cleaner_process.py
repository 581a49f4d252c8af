"""The cleaner: a small process that cleans up after a command, however the command ends.

It runs by its path with nothing but Python's own library, so that it starts at once; a
`worker.Worker` would import our code first. It reads what the command tells it, one line of JSON
each; at the end of that pipe it ends what the command started, takes back files that were not
finished, and removes what was to be temporary.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

VARIABLE = "COMPILESCOPE_CLEANER"
LOCK = ".cleaner"
PREFIX = "compilescope-"
_LOOK_S, _RAREST_LOOK_S = 0.3, 3.0
"""Between two looks at the family. Chosen: who forgets its environment sooner is missed."""
_IDLE_SHARE = 50
"""Where there are many processes, looking takes at most one part in so many of a core. Chosen: 2 %,
as for looking at memory."""
_LONGEST_S = 10.0
"""To end what bears our mark. Chosen: a program that starts itself again has to lose some time."""
_QUIET_LOOKS = 3
"""So often must nothing be found: a process that is just being started bears no mark yet.
Chosen: with 10 ms after each look, this takes at least 30 ms."""


def main(token: str, parent: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    orders = _Orders()
    born = _ticks(os.getpid())
    family: dict[int, str] = {}
    pause = _LOOK_S
    while orders.open:
        if select.select([0], [], [], pause)[0]:
            orders.read()
        elif os.getppid() != parent:
            break  # A fork of the command's still holds its end of the pipe.
        else:
            # Who forgets the environment it was started with is known as a descendant.
            begun = time.process_time()
            family.update((pid, _started(pid)) for pid in descendants(parent, since=born))
            taken = time.process_time() - begun
            pause = min(max(_LOOK_S, _IDLE_SHARE * taken), _RAREST_LOOK_S)
    if not orders.in_order:
        _end_family(family)
    _end_marked(token)
    for journal in orders.journals:
        restore(journal)
    for path in reversed(orders.kept):
        remove(path)
    if orders.stale:
        _remove_stale(orders.stale)


class _Orders:
    """What the command has said so far."""

    def __init__(self) -> None:
        self.open = True
        self.in_order = False
        self.kept: dict[str, None] = {}
        """Paths to be removed."""
        self.journals: dict[str, None] = {}
        self.stale = ""
        """A folder in which cleaners that were killed themselves may have left something."""
        self._rest = b""

    def read(self) -> None:
        data = os.read(0, 1 << 16)
        self.open = bool(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._obey(*json.loads(line))

    def _obey(self, what: str, value: str) -> None:
        if what == "keep":
            self.kept[value] = None
        elif what == "drop":
            self.kept.pop(value, None)
        elif what == "journal":
            self.journals[value] = None
        elif what == "done":
            self.journals.pop(value, None)
        elif what == "stale":
            self.stale = value
        elif what == "end":
            self.in_order = True


def descendants(pid: int, since: int = 0) -> list[int]:
    """All but this process, and but the children that were there before `since`, with all theirs:
    they are not the command's."""
    found = _children(pid, since)
    waiting = list(found)
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int, since: int = 0) -> list[int]:
    threads = f"/proc/{pid}/task"
    children: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(threads):
            with contextlib.suppress(OSError), open(f"{threads}/{thread}/children") as file:
                children += map(int, file.read().split())
    return [child for child in children if child != os.getpid() and _ticks(child) >= since]


def _ticks(pid: int) -> int:
    return int(_started(pid) or 0)


def _started(pid: int) -> str:
    """When it was, in the system's own count: a number may be given to another process later."""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[19].decode()
    return ""


def _end_family(family: dict[int, str]) -> None:
    for pid, started in family.items():
        if started and _started(pid) == started:
            for each in (*descendants(pid), pid):
                _kill(each)


def _end_marked(token: str) -> None:
    """Until no process is left that was started with our mark."""
    until = time.monotonic() + _LONGEST_S
    quiet = 0
    while quiet < _QUIET_LOOKS and time.monotonic() < until:
        found = list(_marked(f"{VARIABLE}={token}"))
        for pid in found:
            _kill(pid)
        quiet = 0 if found else quiet + 1
        time.sleep(0.01)


def _marked(mark: str) -> list[int]:
    if not os.path.isdir("/proc/self"):
        return _marked_by_ps(mark)
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if mark.encode() in file.read().split(b"\0") and not _is_over(name):
                    found.append(int(name))
    return found


def _is_over(name: str) -> bool:
    """Does it only wait to be reaped?"""
    with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    return True


def _marked_by_ps(mark: str) -> list[int]:
    """Systems without /proc: their `ps` shows the environment of one's own processes."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = ["ps", "-Eww", "-ax", "-o", "pid=,command="]
        rows = subprocess.run(command, capture_output=True, timeout=_LONGEST_S, check=False).stdout
        found = (row.split(None, 1)[0] for row in rows.splitlines() if mark.encode() in row)
        return [int(pid) for pid in found if int(pid) != os.getpid()]
    return []


def _kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def remove(path: str) -> None:
    """A file or a folder, as far as that is possible."""
    if os.path.islink(path) or not os.path.isdir(path):
        _unlink(path)
        return
    shutil.rmtree(path, ignore_errors=True)
    if os.path.exists(path):
        _remove_stubborn(path)


def _remove_stubborn(path: str) -> None:
    """With one open file at a time, where few are allowed; and what a program has locked up."""
    folders, waiting = [], [path]
    while waiting:
        folder = waiting.pop()
        folders.append(folder)
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o700)
        with contextlib.suppress(OSError), os.scandir(folder) as found:
            for entry in list(found):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    _unlink(entry.path)
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _remove_stale(folder: str) -> None:
    """What a command left whose cleaner was killed with it: nobody holds its lock any more.
    Folders of other users are none of ours, whatever their locks say."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            lock = os.path.join(entry.path, LOCK)
            own = entry.name.startswith(PREFIX) and entry.stat().st_uid == os.getuid()
            if own and os.path.isfile(lock) and is_free(lock):
                with open(lock, encoding="ascii", errors="replace") as file:
                    token = file.read(64)
                if token:
                    _end_marked(token)
                remove(entry.path)


def is_free(lock: str) -> bool:
    """Is the process dead that had locked this file?"""
    try:
        import fcntl

        with open(lock, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except (ImportError, OSError):
        return False


def restore(journal: str) -> list[str]:
    """Take back what a set of files was begun to be replaced with; the files that were. A file
    that somebody has changed since keeps what it has."""
    taken_back = []
    try:
        with open(journal, "rb") as file:
            entries = json.load(file)["files"]
        for entry in entries:
            if _take_back(entry):
                taken_back.append(entry["path"])
        os.unlink(journal)
    except (OSError, ValueError, KeyError, TypeError):
        pass  # It stays: the next start of the tool tries again.
    return taken_back


def _take_back(entry: dict[str, str | None]) -> bool:
    path, part, old, new = (entry[name] for name in ("path", "part", "old", "new"))
    assert path is not None and part is not None and new is not None
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)
    try:
        with open(path, "rb") as file:
            now = file.read()
    except FileNotFoundError:
        return False
    if now != base64.b64decode(new) or old == new:
        return False
    if old is None:
        os.unlink(path)
        return True
    with open(part, "xb") as file:
        os.chmod(part, os.stat(path).st_mode & 0o7777)
        file.write(base64.b64decode(old))
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    return True


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
