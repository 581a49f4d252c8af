"""Worker processes that draw the pages of runs.

A large run takes a minute, and the server answers everybody from one thread. What was drawn is kept
until a file of the run changes. Who asks for what is being drawn waits for the same answer, and who
asks for too much gets a page that asks again by itself.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from starlette.exceptions import HTTPException

from compilescope.apps.dashboard.addresses import MissingPage
from compilescope.base.errors import ToolError
from compilescope.base.processes.fork import die_with_parent
from compilescope.record.header import FILE_NAME, read_header
from compilescope.record.run import is_live

T = TypeVar("T")
Stamp = tuple[object, ...]
"""What tells whether a run has changed since it was looked at, without reading it."""
_STAMPED = ("events-", "sweep.json")
_Key = tuple[Hashable, tuple[Stamp, ...]]
"""What was asked for, and how the runs that it speaks of looked."""
_NICE = 5
"""A captured program is worth more than a page. Chosen: it steps back, but is not starved."""
_FAILURE_S = 60
"""For so long nobody tries again what just crashed or took too long. Chosen: reloading a page does
not bind a core, and a fixed run is soon drawn."""
_MOST_FAILURES = 100
"""That are remembered. Chosen: a bound for memory."""


class StillDrawing(HTTPException):
    """The page is on its way: the answer is a page that asks again."""

    def __init__(self) -> None:
        super().__init__(202, "This page is being prepared.")


class DrawingWorkers:
    """A few worker processes and what they drew."""

    def __init__(
        self,
        *,
        workers: int = 2,
        patience: float = 2,
        limit: float = 600,
        most_bytes: int = 96 << 20,
        most_waiting: int = 100,
        tasks_each: int = 60,
    ) -> None:
        """`patience`: seconds until a reader gets a page that says to wait; `limit`: seconds that
        one drawing may take; `tasks_each`: a worker is replaced after so many, with what it
        leaked."""
        self._patience = patience
        self._limit = limit
        self._most_waiting = most_waiting
        self._kept = PageCache(most_bytes)
        self._lanes = [_WorkerSlot(tasks_each) for _ in range(workers)]
        self._free: asyncio.Queue[_WorkerSlot] | None = None
        self._tasks: dict[_Key, asyncio.Task[DrawnPage]] = {}
        self._failures: OrderedDict[_Key, tuple[float, str]] = OrderedDict()

    async def draw(
        self, function: Callable[..., T], *given: Any, patience: float | None = None
    ) -> T:
        """What the function, one of a module, answers in a worker. Arguments are values that can
        be compared; a `Path` among them, or in a tuple, is the folder of a run. `patience`: for
        what can't be answered by a page that says to wait."""
        call = (function.__module__, function.__qualname__, given)
        folders = list(_folders(given))
        stamps = await asyncio.to_thread(_stamps, folders) if folders else ()
        kept = self._kept.get(call, stamps)
        if kept is not None:
            return cast(T, kept.answer)
        try:
            return cast(T, await self._drawn(function, given, (call, stamps), patience))
        except (ToolError, OSError):
            _check_there(folders)
            raise

    async def close(self) -> None:
        # Before the tasks, which would not wait for the end of what they kill.
        killed = [pool for lane in self._lanes if (pool := lane.take_killed()) is not None]
        for task in self._tasks.values():
            task.cancel()
        ending = (asyncio.to_thread(pool.shutdown, cancel_futures=True) for pool in killed)
        await asyncio.gather(*ending)

    @property
    def workers(self) -> list[int]:
        """Ids of the processes that are there now."""
        return [lane.pid for lane in self._lanes if lane.pid is not None]

    async def _drawn(
        self,
        function: Callable[..., Any],
        given: tuple[Any, ...],
        key: _Key,
        patience: float | None,
    ) -> Any:
        failed_at, failure = self._failures.get(key, (0.0, ""))
        if failure and time.monotonic() - failed_at < _FAILURE_S:
            raise HTTPException(503, failure)
        if key not in self._tasks:
            if len(self._tasks) >= self._most_waiting:
                raise HTTPException(503, "Too many pages are being drawn. Try again in a minute.")
            task = asyncio.create_task(self._work(key, function, given))
            # A reader who leaves must not leave an error behind that nobody looks at.
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            self._tasks[key] = task
        done, _ = await asyncio.wait({self._tasks[key]}, timeout=patience or self._patience)
        if not done:
            raise StillDrawing
        return done.pop().result().answer

    async def _work(
        self, key: _Key, function: Callable[..., Any], given: tuple[Any, ...]
    ) -> DrawnPage:
        if self._free is None:
            self._free = asyncio.Queue()
            for lane in self._lanes:
                self._free.put_nowait(lane)
        lane = await self._free.get()
        try:
            await lane.start()
            answer = await asyncio.wait_for(lane.run(function, given), self._limit)
            # The reader may be gone, or come back when the drawing is done.
            self._kept.put(*key, answer)
            return answer
        except (asyncio.TimeoutError, BrokenProcessPool) as error:
            lane.kill()
            failure = _words(error, self._limit)
            self._failures[key] = (time.monotonic(), failure)
            if len(self._failures) > _MOST_FAILURES:
                self._failures.popitem(last=False)
            raise HTTPException(503, failure) from None
        except asyncio.CancelledError:
            lane.kill()
            raise
        finally:
            self._tasks.pop(key, None)
            self._free.put_nowait(lane)


def _words(error: BaseException, limit: float) -> str:
    if isinstance(error, BrokenProcessPool):
        return "The process that drew this page died; the machine may be out of memory."
    return f"This page was not drawn within {limit:g} s. `compilescope report` has no such limit."


class DrawnPage(NamedTuple):
    """What was drawn. Readers share it."""

    answer: Any
    bytes: int


class PageCache:
    """Answers, until they are too many bytes; those that nobody asked for longest go first."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._answers: OrderedDict[Hashable, tuple[tuple[Stamp, ...], DrawnPage]] = OrderedDict()

    def get(self, call: Hashable, stamps: tuple[Stamp, ...]) -> DrawnPage | None:
        known = self._answers.get(call)
        if known is None or known[0] != stamps:
            return None
        self._answers.move_to_end(call)
        return known[1]

    def put(self, call: Hashable, stamps: tuple[Stamp, ...], answer: DrawnPage) -> None:
        self._drop(call)
        if answer.bytes > self._most // 2:
            return
        self._answers[call] = (stamps, answer)
        self._bytes += answer.bytes
        while self._bytes > self._most:
            self._drop(next(iter(self._answers)))

    def _drop(self, call: Hashable) -> None:
        known = self._answers.pop(call, None)
        self._bytes -= known[1].bytes if known is not None else 0


class _WorkerSlot:
    """One worker, which is there once it is needed. A crash is that of its own page alone."""

    def __init__(self, most_tasks: int) -> None:
        self._most = most_tasks
        self._tasks = 0
        self._pool: ProcessPoolExecutor | None = None
        self.pid: int | None = None

    async def start(self) -> None:
        if self._pool is not None:
            return
        try:
            # Started from this thread, which lives as long as the server: a worker dies with it.
            self._pool = ProcessPoolExecutor(
                1, multiprocessing.get_context("spawn"), _begin, (os.getpid(),)
            )
            loop = asyncio.get_running_loop()
            ready = loop.run_in_executor(self._pool, os.getpid)
            # It is there by now, and may take long to begin: then too it can be killed.
            self.pid = next(iter(self._pool._processes))
            await ready
        except OSError as error:  # No memory, processes or files left: the next task tries again.
            self.kill()
            words = f"The process that draws pages can't be started: {error.strerror}."
            raise HTTPException(503, words) from None

    async def run(self, function: Callable[..., Any], given: tuple[Any, ...]) -> DrawnPage:
        loop = asyncio.get_running_loop()
        self._tasks += 1
        try:
            return await loop.run_in_executor(self._pool, _answered, function, given)
        finally:
            if self._tasks >= self._most:
                self.kill()

    def kill(self) -> None:
        """The next task gets a new one."""
        pool = self.take_killed()
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def take_killed(self) -> ProcessPoolExecutor | None:
        """The pool, to be shut down by whoever asks, its process killed."""
        pool, pid = self._pool, self.pid
        self._pool, self.pid, self._tasks = None, None, 0
        if pid is not None:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return pool


def _begin(parent: int) -> None:
    """In a worker, before its first task."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)
    threading.Thread(target=_follow_parent, daemon=True).start()
    with suppress(OSError):
        os.nice(_NICE)


def _follow_parent() -> None:
    """Where the system has no signal for it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _answered(function: Callable[..., Any], given: tuple[Any, ...]) -> DrawnPage:
    drawn = function(*given)
    return DrawnPage(drawn, size_of(drawn))


def size_of(value: Any) -> int:
    """About how much memory it takes. What is drawn is text, and tuples of it."""
    own = sys.getsizeof(value)
    if isinstance(value, dict):
        return own + sum(size_of(key) + size_of(each) for key, each in value.items())
    if isinstance(value, (tuple, list, set, frozenset)):
        return own + sum(map(size_of, value))
    return own


def _folders(given: tuple[Any, ...]) -> Iterator[Path]:
    for value in given:
        if isinstance(value, Path):
            yield value
        elif isinstance(value, tuple):
            yield from _folders(value)


def _stamps(folders: list[Path]) -> tuple[Stamp, ...]:
    return tuple(map(_stamp_of, folders))


def _check_there(folders: list[Path]) -> None:
    for folder in folders:
        if not folder.is_dir():
            raise MissingPage(f"The run {folder.name} is no longer there.", hint="It was deleted.")


def _stamp_of(folder: Path) -> Stamp:
    """Names, sizes and times of the files that say what happened, and whether the run goes on:
    one whose launcher was killed looks other than before, though no file has changed."""
    try:
        with os.scandir(folder) as entries:
            files = sorted(
                (entry.name, status.st_size, status.st_mtime_ns)
                for entry in entries
                if entry.name == FILE_NAME or entry.name.startswith(_STAMPED)
                for status in (entry.stat(follow_symlinks=False),)
            )
    except OSError:
        return ("gone",)
    try:
        live = is_live(read_header(folder))
    except ToolError:
        live = False
    return (live, *files)
