"""Runs commands of compilescope in forked children that may use only so much time and memory.

The parent imports what the commands need, once: a child costs a few milliseconds. Apart from that a
child is a process of its own: the command's own entry, real files as stdout and stderr, the
traceback and the exit that Python would give it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import importlib.abc
import json
import logging
import os
import pkgutil
import resource
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

PAGE = resource.getpagesize()
MOST_S = 10
MOST_MB = 300
MOST_WALL_S = 120
"""By the clock, on a busy machine: who needs longer waits for something."""
_SPARE_MB = 1500
"""Above what is allowed: then the child is stopped, for the machine's sake."""
_MOST_READ = 1 << 20
_TRACEBACK = "Traceback (most recent call last)"
_OUR_FAULTS = (
    "this is a bug in compilescope",
    "This is a bug in compilescope",
    "Exception ignored",
)
_ROOMS = ("apps.cli", "logs", "record", "knowledge", "report", "change.fixes")
_SKIPPED = ("examples", "programs")


@dataclass
class Outcome:
    """What a child did."""

    status: int
    """Below zero: the signal that ended it."""
    seconds: float
    megabytes: float
    """Over what it held when it was forked."""
    trouble: str
    """A traceback, or why it was stopped; empty where all is well."""
    output: str
    """stdout, and stderr behind it."""
    stdout: str = ""

    def problems(self, most_s: float = MOST_S, most_mb: float = MOST_MB) -> list[str]:
        found = [self.trouble] if self.trouble else []
        if self.seconds > most_s:
            found.append(f"{self.seconds:.1f} s of CPU")
        if self.megabytes > most_mb:
            found.append(f"{self.megabytes:.0f} MB")
        return found


class _NoTorch(importlib.abc.MetaPathFinder):
    """As where it is not installed."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def warm_up() -> None:
    """Import the package's modules that the commands need, all but torch: no command that reads
    what is recorded may depend on it, and it would cost each child more than the command."""
    sys.meta_path.insert(0, _NoTorch())
    for room in _ROOMS:
        package = importlib.import_module(f"compilescope.{room}")
        for info in pkgutil.walk_packages(package.__path__, f"compilescope.{room}."):
            if not any(part in _SKIPPED for part in info.name.split(".")):
                with contextlib.suppress(ImportError):
                    importlib.import_module(info.name)
    gc.collect()
    gc.freeze()


def rehearse(commands: list[list[str]], folder: Path, variables: Mapping[str, str]) -> None:
    """Run commands in the parent: what they import, compile and keep, children need not make
    again. Fresh processes, now and then, see what is cold."""
    before = Path.cwd(), dict(os.environ), sys.argv, sys.stdout, sys.stderr
    os.environ.update(variables)
    os.chdir(folder)
    try:
        with open(os.devnull, "w") as nowhere:
            for words in commands:
                sys.stdout = sys.stderr = nowhere
                sys.argv = ["compilescope", *words]
                with contextlib.suppress(SystemExit):
                    importlib.import_module("compilescope.apps.cli.main").main()
    finally:
        os.chdir(before[0])
        os.environ.clear()
        os.environ.update(before[1])
        _, _, sys.argv, sys.stdout, sys.stderr = before
        # A child sets up its own, as far as it is asked to say.
        logging.root.handlers.clear()
        logging.root.setLevel(logging.WARNING)
    gc.collect()
    gc.freeze()


def run_commands(commands: list[list[str]], folder: Path, most_s: int = MOST_S) -> Outcome:
    """The commands one after the other, in `folder`; the most that any of them took."""
    found = [run_command(words, folder, most_s=most_s) for words in commands]
    return Outcome(
        status=next((each.status for each in found if each.status), 0),
        seconds=max(each.seconds for each in found),
        megabytes=max(each.megabytes for each in found),
        trouble="\n".join(filter(None, (each.trouble for each in found))),
        output="".join(each.output for each in found),
    )


def run_command(
    words: list[str] | Callable[[], object],
    folder: Path,
    *,
    variables: Mapping[str, str] | None = None,
    encoding: str = "utf-8",
    stdin: Path | None = None,
    most_s: int = MOST_S,
) -> Outcome:
    """One command, or a call in its place, in a child whose working folder is `folder`."""
    out, said, notes = (os.memfd_create(name) for name in ("stdout", "stderr", "notes"))
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        try:
            source = os.open(stdin if stdin is not None else os.devnull, os.O_RDONLY)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _limit(notes, most_s)
            _take_streams(source, out, said, encoding)
            os.environ.update(variables or {})
            os.chdir(folder)
            status = _as_process(words)
        except BaseException as error:
            os.write(notes, f" the harness failed: {error!r}".encode())
            status = 1
        os._exit(status & 0xFF)
    waited = _wait(child, MOST_WALL_S)
    _, status, used = os.wait4(child, 0)
    before, _, ours = _read(notes).partition(" ")
    texts = [_read(out), _read(said)]
    for each in (out, said, notes):
        os.close(each)
    code = os.waitstatus_to_exitcode(status)
    return Outcome(
        status=code,
        seconds=used.ru_utime + used.ru_stime,
        megabytes=used.ru_maxrss / 1024 - float(before or 0),
        trouble=ours or _trouble(code, texts[1], "".join(texts), waited=waited),
        output="".join(texts),
        stdout=texts[0],
    )


@dataclass(frozen=True)
class Task:
    """A command to run."""

    words: list[str]
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    encoding: str = "utf-8"
    stdin: Path | None = None
    needs: Path | None = None
    """A folder without which there is nothing to do."""

    def alone(self) -> Outcome:
        return run_command(
            self.words,
            self.folder,
            variables=self.variables,
            encoding=self.encoding,
            stdin=self.stdin,
        )

    @property
    def is_possible(self) -> bool:
        return self.needs is None or self.needs.is_dir()


def run_tasks(tasks: list[Task]) -> list[Outcome | None]:
    """One after the other in one child, which costs far less than a child for each. None: there
    was nothing to do. What goes wrong there is tried again alone, and that counts."""
    notes = os.memfd_create("notes")
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        try:
            for task in tasks:
                os.write(notes, json.dumps(_told(task)).encode() + b"\n")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    answers = [json.loads(line) for line in _read(notes).splitlines()]
    os.close(notes)
    found: list[Outcome | None] = []
    for number, task in enumerate(tasks):
        outcome = None
        if number >= len(answers):  # It ended the child.
            outcome = task.alone() if task.is_possible else None
        elif answers[number] is not None:
            outcome = Outcome(**answers[number])
            outcome = task.alone() if outcome.problems() else outcome
        found.append(outcome)
    return found


def _told(task: Task) -> dict[str, object] | None:
    """In the child: what came of a task."""
    if not task.is_possible:
        return None
    out, said = (os.memfd_create(name) for name in ("stdout", "stderr"))
    source = os.open(task.stdin if task.stdin is not None else os.devnull, os.O_RDONLY)
    Path("/proc/self/clear_refs").write_text("5")  # The peak of memory starts anew.
    before, began = _resident_mb(), time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(began) + MOST_S + 2, -1))
    signal.alarm(MOST_WALL_S)
    kept = dict(os.environ)
    _take_streams(source, out, said, task.encoding)
    os.environ.update(task.variables)
    os.chdir(task.folder)
    status = _as_process(task.words)
    signal.alarm(0)
    logging.root.handlers.clear()
    os.environ.clear()
    os.environ.update(kept)
    texts = [_read(out), _read(said)]
    for each in (source, out, said):
        os.close(each)
    return {
        "status": status,
        "seconds": time.process_time() - began,
        "megabytes": _peak_mb() - before,
        "trouble": _trouble(status, texts[1], "".join(texts), waited=False),
        "output": "".join(texts)[-2000:],
    }


def _peak_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def run_process(
    words: list[str], folder: Path, *, variables: Mapping[str, str], encoding: str = "utf-8"
) -> Outcome:
    """As `run_command`, in a fresh interpreter: what a user's shell would start."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "compilescope", *words],
        cwd=folder,
        env={**os.environ, **variables, "PYTHONIOENCODING": encoding},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=MOST_WALL_S,
        check=False,
    )
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    out, said = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return Outcome(
        status=done.returncode,
        seconds=used.ru_utime + used.ru_stime - began.ru_utime - began.ru_stime,
        megabytes=0.0,
        trouble=_trouble(done.returncode, said, out + said, waited=False),
        output=out + said,
        stdout=out[:_MOST_READ],
    )


def _trouble(code: int, said: str, everything: str, *, waited: bool) -> str:
    if waited:
        return f"still running after {MOST_WALL_S} s\n{said[-2000:]}"
    if code == -signal.SIGXCPU:
        return ""  # Its seconds say it.
    if code < 0:
        return f"killed by {signal.Signals(-code).name}\n{said[-2000:]}"
    if _TRACEBACK in said:
        return said[-4000:]
    faults = [mark for mark in _OUR_FAULTS if mark in everything]
    return f"{faults[0]}\n{everything[-2000:]}" if faults else ""


def _wait(child: int, seconds: float) -> bool:
    """Until it has ended; True where it had to be stopped."""
    handle = os.pidfd_open(child)
    try:
        with contextlib.closing(select.epoll()) as waiting:
            waiting.register(handle, select.EPOLLIN)
            if waiting.poll(seconds):
                return False
        os.kill(child, signal.SIGABRT)
        return True
    finally:
        os.close(handle)


def _read(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    found = b""
    while len(found) < _MOST_READ and (more := os.read(descriptor, _MOST_READ)):
        found += more
    return found.decode("utf-8", "replace")


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 2**20


def _limit(notes: int, most_s: int) -> None:
    # Less than the parent has: pages of files come as they are used.
    os.write(notes, f"{_resident_mb()}".encode())
    resource.setrlimit(resource.RLIMIT_CPU, (most_s + 2, most_s + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    space = int(Path("/proc/self/statm").read_text().split()[0]) * PAGE
    resource.setrlimit(resource.RLIMIT_AS, (space + (_SPARE_MB << 20), -1))


def _take_streams(source: int, out: int, said: int, encoding: str) -> None:
    """As the interpreter makes them of the three descriptors when it starts."""
    for number, descriptor in enumerate((source, out, said)):
        os.dup2(descriptor, number)
    opened = partial(os.fdopen, encoding=encoding, closefd=False)
    sys.stdin = sys.__stdin__ = opened(0)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = opened(1, "w")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = opened(  # type: ignore[misc]
        2, "w", buffering=1, errors="backslashreplace"
    )


def _as_process(words: list[str] | Callable[[], object]) -> int:
    """What Python does around a program: its status, its traceback, its last flush."""
    from compilescope.apps.cli.main import main

    if not callable(words):
        sys.argv, words = ["compilescope", *words], main
    status = 0
    try:
        words()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    # What the parent is to remove at its own end is no business of the child's.
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            status = 120
    return status


class Clock:
    """How far a long trial has come, for a line now and then."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._began = self._told = time.monotonic()

    def line(self, done: int, *, every_s: float = 30.0) -> str | None:
        now = time.monotonic()
        if now - self._told < every_s or not done:
            return None
        self._told = now
        left = (now - self._began) / done * (self._total - done)
        return f"{done:,} of {self._total:,}, about {left / 60:.0f} min left"
