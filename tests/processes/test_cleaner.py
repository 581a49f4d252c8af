"""Nothing of a command outlives it: these kill one, and look at what is left."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from compilescope.apps.cli.progress import ended_in_order
from compilescope.base.errors import ToolError, as_limit
from compilescope.base.processes import cleaner, cleaner_process
from compilescope.base.processes.cleaner import (
    FileChange,
    claimed,
    journal,
    lasting_folder,
    leaving_nothing,
    restore_interrupted,
    transient,
)
from compilescope.base.processes.cleaner_process import remove
from compilescope.base.processes.table import is_running
from waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

COMMAND = """
import os, subprocess, sys, tempfile, time
from pathlib import Path
from compilescope.base.processes import cleaner_process
from compilescope.base.processes.cleaner import leaving_nothing, transient

cleaner_process.__file__ = sys.argv[1]
with leaving_nothing(), transient(Path("half")) as half:
    half.write_text("half")
    tempfile.mkdtemp()
    deaf = "import signal, tempfile, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    deaf += "tempfile.mkdtemp(); print(flush=True); time.sleep(600)"
    child = subprocess.Popen(
        [sys.executable, "-c", deaf], stdout=subprocess.PIPE, start_new_session=True
    )
    child.stdout.readline()
    daemon = "(setsid sleep 600 >/dev/null & echo $!) "
    pid = int(subprocess.run(["sh", "-c", daemon], stdout=subprocess.PIPE).stdout)
    lost = subprocess.Popen(["sleep", "600"], env={}, start_new_session=True).pid
    Path("ready").write_text(f"{child.pid} {pid} {lost}")
    time.sleep(600)
"""

WATCHED = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("cleaner_process", {cleaner!r})
cleaner = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cleaner)
look = cleaner.descendants

def noted(*given, **named):
    found = look(*given, **named)
    with open({noted!r}, "a") as file:
        file.write("".join(f"{{pid}}\\n" for pid in found))
    return found

cleaner.descendants = noted
cleaner.main(sys.argv[1], int(sys.argv[2]))
"""
"""A cleaner that also writes down whom it has seen: it looks now and then, whenever that is."""


class Watched:
    """Such a cleaner's file, and what it has seen."""

    def __init__(self, folder: Path) -> None:
        self.file, self._noted = folder / "watched_cleaner.py", folder / "noted"
        text = WATCHED.format(cleaner=cleaner_process.__file__, noted=str(self._noted))
        self.file.write_text(text)

    def has_seen(self, pid: int) -> bool:
        return self._noted.exists() and f"{pid}\n" in self._noted.read_text().splitlines(True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_whatever_ends_a_command_leaves_nothing(
    number: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    temporary, work = Path(tempfile.mkdtemp(dir="/tmp", prefix="t")), tmp_path / "work"
    request.addfinalizer(lambda: shutil.rmtree(temporary))
    work.mkdir()
    watched = Watched(tmp_path)
    command = [sys.executable, "-c", COMMAND, str(watched.file)]
    around = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(command, cwd=work, env=around, stderr=subprocess.DEVNULL)
    request.addfinalizer(process.kill)
    until(lambda: (work / "ready").exists() and (work / "ready").read_text().count(" ") == 2)
    pids = list(map(int, (work / "ready").read_text().split()))
    # The last has forgotten the environment it was started with: the cleaner must have seen it.
    until(lambda: watched.has_seen(pids[-1]))
    assert all(map(is_running, pids)) and any(temporary.iterdir())
    process.send_signal(number)
    process.wait()
    until(lambda: not any(map(is_running, pids)))
    until(lambda: not any(temporary.iterdir()) and not (work / "half").exists())


def test_what_a_program_has_in_the_temporary_folder_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (tmp_path / "mine.txt").write_text("mine")
    inside = "import tempfile; print(open(tempfile.gettempdir() + '/mine.txt').read())"
    before = dict(os.environ)
    with leaving_nothing(), leaving_nothing():
        assert tempfile.gettempdir() != str(tmp_path) == lasting_folder()
        said = subprocess.run([sys.executable, "-I", "-c", inside], stdout=subprocess.PIPE)
    monkeypatch.setattr("compilescope.base.processes.cleaner._SOCKET_FITS", 1000)
    with leaving_nothing():
        linked = subprocess.run([sys.executable, "-c", inside], stdout=subprocess.PIPE)
    assert said.stdout == linked.stdout == b"mine\n"
    assert dict(os.environ) == before and tempfile.gettempdir() == str(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


WRITE = """
import os, signal, sys
from contextlib import nullcontext
from compilescope.base.processes.cleaner import leaving_nothing
from compilescope.change.repair.delivery.stored_fix import write_files

replace, names = os.replace, []
def fatal(source, target):
    replace(source, target)
    names.append(str(target))
    if names[-1].endswith("b.py"):
        os.kill(os.getpid(), signal.SIGKILL)
os.replace = fatal
files = {os.path.abspath(name): "new" for name in ("a.py", "b.py", "c.py")}
with leaving_nothing() if sys.argv[1] == "leaving_nothing" else nullcontext():
    write_files(files, {})
"""


@pytest.mark.parametrize("how", ["leaving_nothing", "alone"])
def test_a_set_of_files_is_replaced_as_one(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    work = tmp_path / "work"
    work.mkdir()
    for name in ("a.py", "b.py", "c.py"):
        (work / name).write_text(f"old {name}")
    done = subprocess.run([sys.executable, "-c", WRITE, how], cwd=work, check=False)
    assert done.returncode == -signal.SIGKILL
    if how == "alone":
        assert (work / "a.py").read_text() == "new" and (work / "c.py").read_text() == "old c.py"
        (work / "b.py").write_text("mine since")
        assert restore_interrupted() == [str(work / "a.py")]
        assert (work / "b.py").read_text() == "mine since"
        (work / "b.py").write_text("old b.py")
    until(lambda: not any((tmp_path / "state").rglob(".*.journal")))
    assert sorted(path.name for path in work.iterdir()) == ["a.py", "b.py", "c.py"]
    assert all(path.read_text() == f"old {path.name}" for path in work.iterdir())


def test_what_a_killed_cleaner_left_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("compilescope-dead", "compilescope-site", "compilescope-made", "mine"):
        (tmp_path / name).mkdir()
    with claimed(str(tmp_path / "compilescope-site")):
        assert not cleaner_process.is_free(str(tmp_path / "compilescope-site" / ".cleaner"))
    (tmp_path / "mine" / ".cleaner").touch()
    (tmp_path / "compilescope-dead" / ".cleaner").write_text("abcd")
    marks = {"COMPILESCOPE_CLEANER": "abcd"}, {"COMPILESCOPE_CLEANER": "abc"}
    dead, other = (subprocess.Popen(["sleep", "600"], env=mark) for mark in marks)
    try:
        with leaving_nothing():
            pass
        assert dead.wait(600) == -signal.SIGKILL and other.poll() is None
    finally:
        dead.kill()
        other.kill()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["compilescope-made", "mine"]


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_cleaner_ends_what_a_second_interrupt_left(
    interrupted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def end_children(but: object) -> None:
        if interrupted:
            raise KeyboardInterrupt

    monkeypatch.setattr(cleaner, "end_children", end_children)
    monkeypatch.setattr(cleaner._CleanerPipe, "say", lambda self, what, value="": said.append(what))
    with contextlib.suppress(KeyboardInterrupt), leaving_nothing():
        pass
    assert ("end" in said) is not interrupted


def test_the_cleaner_leaves_what_was_there_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the command ends: what a notebook or a server runs beside it is not its own."""
    sleep = ["sleep", "600"]
    watched = Watched(tmp_path)
    monkeypatch.setattr(cleaner_process, "__file__", str(watched.file))
    monkeypatch.setattr(cleaner, "end_children", lambda but: None)
    told = cleaner._CleanerPipe.say

    def say(self: Any, what: str, value: str = "") -> None:
        if what != "end":
            told(self, what, value)

    monkeypatch.setattr(cleaner._CleanerPipe, "say", say)
    with subprocess.Popen(sleep) as before:
        # The system counts in hundredths of a second: the cleaner starts in a later one.
        until(lambda: _ticks_now() > cleaner_process._ticks(before.pid))
        with leaving_nothing():
            within = subprocess.Popen(sleep)
            until(lambda: watched.has_seen(within.pid))
        assert within.wait(600) == -signal.SIGKILL
        assert before.poll() is None and not watched.has_seen(before.pid)
        before.kill()


def _ticks_now() -> int:
    """As the system counts the starts of processes."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def test_a_journal_in_use_is_let_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "a.py"
    path.write_text("new")
    with journal([FileChange(path, tmp_path / "part", None, b"new")]):
        assert restore_interrupted() == []
    assert path.read_text() == "new"
    assert not any((tmp_path / "state" / "compilescope" / "journals").iterdir())


def test_a_damaged_journal_harms_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "compilescope" / "journals"
    folder.mkdir(parents=True)
    for number, text in enumerate(("", "{", '{"files": 3}', '{"files": [{"path": 1}]}', "[]")):
        (folder / f".{number}.journal").write_text(text)
    assert restore_interrupted() == []


def test_what_is_transient_goes(tmp_path: Path) -> None:
    with transient(tmp_path / "folder") as folder:
        folder.mkdir()
        (folder / "file").write_text("x")
    with transient(tmp_path / "none"):
        pass
    assert not any(tmp_path.iterdir())


REMOVE = """
import resource, sys
from compilescope.base.processes.cleaner_process import remove
from compilescope.base.processes.table import is_running
resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))
remove(sys.argv[1])
"""


def test_few_open_files_are_enough_to_remove_a_deep_folder(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "kept").touch()
    deepest = tmp_path.joinpath("gone", *"abcdefghijkl")
    deepest.mkdir(parents=True)
    (deepest / "file").touch()
    (deepest / "link").symlink_to(mine)
    deepest.chmod(0o500)
    script = tmp_path / "remove.py"
    script.write_text(REMOVE)
    subprocess.run([sys.executable, script, tmp_path / "gone"], check=True)
    assert not (tmp_path / "gone").exists() and (mine / "kept").exists()


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kept").touch()
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    remove(str(tmp_path / "link"))
    assert not (tmp_path / "link").exists() and (tmp_path / "mine" / "kept").exists()


def test_without_a_cleaner_nothing_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(ToolError, match="Cannot start"), leaving_nothing():
        raise AssertionError("it ran")


def test_limits_of_the_system_are_one_sentence() -> None:
    for error in (
        OSError(errno.EMFILE, "Too many open files"),
        BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"),
        OSError(errno.ENOSPC, "No space left on device", "/disk/file"),
        PermissionError(errno.EACCES, "Permission denied", "private/out.html"),
        RuntimeError("can't start new thread"),
    ):
        limit = as_limit(error)
        assert limit is not None and limit.message.endswith("."), error
    for other in (FileNotFoundError(errno.ENOENT, "x"), RuntimeError("x"), ValueError("x")):
        assert as_limit(other) is None


def test_what_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_in_order():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_IGN, signal.SIG_DFL)
    finally:
        signal.signal(signal.SIGHUP, before)
