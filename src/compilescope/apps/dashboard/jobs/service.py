"""Starts jobs, as many at once as is allowed, finds them again, and stops them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path

from compilescope.apps.dashboard.addresses import MissingPage
from compilescope.apps.dashboard.jobs.job import (
    CLAIM,
    ENDED,
    REQUEST,
    STOP,
    UPLOAD,
    CommandJob,
    JobEnd,
    JobRequest,
    StopOrder,
    belongs,
    has_seal,
    read_job,
    sealed,
    write_record,
)
from compilescope.apps.dashboard.server.options import BrowserLimits
from compilescope.base.errors import ToolError
from compilescope.base.processes.child import end_session
from compilescope.record.home import make_home

FOLDER = ".jobs"
KEPT = 500
"""Jobs whose folders are kept: of more, the oldest that have ended are removed. Chosen:
a bound for the disk, since each keeps its output."""
_TICK_S = 0.5
"""Between two looks at running jobs. Chosen: a page seems prompt, and looking costs little."""
_LOOK_S = 5.0
"""Between two looks for jobs that wait though we know of none: their server may be gone. Chosen:
they wait anyway."""
_NOT_OURS = "Not started: it was requested with a different token."
_ABANDONED_S = 3600.0
"""A folder without a job that is older than this was given up: an upload that never ended. Chosen:
even a slow upload has ended by then."""
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")


class TooManyJobs(ToolError):
    """So many wait already that another one is refused."""


class Jobs:
    """The jobs of a folder of runs. Its methods may be called from any thread."""

    def __init__(
        self, home: Path, limits: BrowserLimits, *, key: str = "", kept: int = KEPT
    ) -> None:
        """`key`: a secret by which a job is known to be ours. A folder of runs may come from
        anybody, with jobs in it that wait to be started."""
        self._home = home
        self._place = home / FOLDER
        self._limits = limits
        self._key = key
        self._kept = kept
        self._over: dict[str, CommandJob] = {}
        """Those that have ended: nothing about them changes any more."""
        self._keepers: list[subprocess.Popen[bytes]] = []
        """Ours, to be reaped."""
        self._waits = True
        """There may be jobs that wait; at first it is not known."""
        self._lock = threading.RLock()

    def reserve(self) -> Path:
        """A folder for a job that `start` is going to be told of, for files that it needs."""
        try:
            make_home(self._home)
            self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
            while True:
                name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"
                with contextlib.suppress(FileExistsError):
                    (self._place / name).mkdir(mode=0o700)
                    return self._place / name
        except OSError as error:
            raise ToolError(f"Cannot write under {self._place}: {error.strerror}.") from None

    def give_up(self, folder: Path) -> None:
        """Of a folder that was reserved."""
        shutil.rmtree(folder, ignore_errors=True)

    def start(
        self,
        words: Sequence[str],
        cwd: Path | str,
        *,
        title: str = "",
        form: str = "",
        values: Mapping[str, Sequence[str]] | None = None,
        writes: Sequence[str] = (),
        limit_s: float | None = None,
        folder: Path | None = None,
    ) -> CommandJob:
        """At once where a place is free, else as soon as one is."""
        _check_words((*words, str(cwd)))
        with self._lock:
            waiting = sum(job.state == "waiting" for job in self.all())
            if waiting >= self._limits.waiting:
                raise TooManyJobs(
                    f"{waiting} {'job is' if waiting == 1 else 'jobs are'} waiting already.",
                    hint="Wait until some have ended, or stop them on the Jobs page.",
                )
            own = None if folder else self.reserve()
            folder = folder or own
            assert folder is not None
            request = JobRequest(
                id=folder.name,
                words=tuple(words),
                cwd=str(cwd),
                created=time.time(),
                title=title,
                form=form,
                values={name: list(given) for name, given in (values or {}).items()},
                writes=tuple(writes),
                limit_s=limit_s,
                output_bytes=self._limits.output_bytes,
            )
            try:
                write_record(folder, REQUEST, sealed(request, self._key))
            except OSError as error:
                if own is not None:
                    self.give_up(own)
                raise ToolError(f"Cannot write {folder}: {error.strerror}.") from None
            self.tick()
            self._tidy()
        return self.find(folder.name)

    def all(self) -> list[CommandJob]:
        """Newest first."""
        with self._lock:
            names = sorted(self._names(), reverse=True)
            for gone in self._over.keys() - set(names):
                del self._over[gone]
            jobs = [job for name in names if (job := self._read(name)) is not None]
        return sorted(jobs, key=lambda job: job.request.created, reverse=True)

    def find(self, job: str) -> CommandJob:
        known = _ID.fullmatch(job) and (self._place / job).is_dir()
        found = self._read(job) if known else None
        if found is None:
            raise MissingPage(f"There is no job {job!r}.", hint="It may have been removed.")
        return found

    def is_ours(self, job: CommandJob) -> bool:
        """Was it asked for with our token? What it says may then be asked for again."""
        return has_seal(job.request, self._key)

    def job_of(self, run: str) -> CommandJob | None:
        """The one that made this run."""
        return next((job for job in self.all() if run in job.runs), None)

    def stop(self, job: str, *, kill: bool = False) -> CommandJob:
        """Politely, like Ctrl-C; then harder, as the keeper's grace passes. `kill`: at once."""
        with self._lock:
            found = self.find(job)
            if found.orphan is not None and belongs(found.orphan, found.folder):
                end_session(found.orphan, running=True)
            if found.is_over:
                return found
            folder = found.folder
            with contextlib.suppress(OSError):
                write_record(folder, STOP, StopOrder(at=time.time(), kill=kill))
            if found.state == "waiting" and _claim(folder):
                _note_end(folder, "order", "Stopped before it started.")
                shutil.rmtree(folder / UPLOAD, ignore_errors=True)
            # Until the keeper hears signals it reads the order from the file.
            begun = self.find(job).begun
            if begun is not None and belongs(begun.keeper, folder):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(begun.keeper, signal.SIGUSR1 if kill else signal.SIGTERM)
        return self.find(job)

    def tick(self) -> None:
        """Start what may start now."""
        with self._lock:
            self._keepers = [keeper for keeper in self._keepers if keeper.poll() is None]
            active = [job for job in self.all() if not job.is_over]
            free = self._limits.jobs - sum(job.state == "running" for job in active)
            waiting = [job for job in reversed(active) if job.state == "waiting"]
            for job in waiting[: max(0, free)]:
                if not _claim(job.folder):
                    continue
                if has_seal(job.request, self._key):
                    self._launch(job.folder)
                else:
                    _note_end(job.folder, "", _NOT_OURS)
            self._waits = len(waiting) > free

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """For as long as the server answers, waiting jobs are started."""
        task = asyncio.create_task(self._ticking())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _ticking(self) -> None:
        looked = 0.0
        while True:
            if self._waits or self._keepers or time.monotonic() > looked + _LOOK_S:
                looked = time.monotonic()
                with contextlib.suppress(OSError):
                    await asyncio.to_thread(self.tick)
            await asyncio.sleep(_TICK_S)

    def _launch(self, folder: Path) -> None:
        safe = ["-P"] if sys.version_info >= (3, 11) else []
        words = [*safe, "-m", "compilescope.apps.dashboard.jobs.keeper", str(folder)]
        try:
            with (folder / "keeper.log").open("wb") as log:
                keeper = subprocess.Popen(
                    [sys.executable, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=folder,
                    start_new_session=True,
                )
        except OSError as error:
            _note_end(folder, "", f"It could not be started: {error.strerror}.")
            return
        self._keepers.append(keeper)

    def _names(self) -> Iterator[str]:
        with contextlib.suppress(OSError):
            yield from (name for name in os.listdir(self._place) if _ID.fullmatch(name))

    def _read(self, name: str) -> CommandJob | None:
        known = self._over.get(name)
        if known is not None:
            return known
        job = read_job(self._place / name, self._home)
        # A lost one may turn out to have been slow.
        if job is not None and job.is_over and job.state != "lost":
            self._over[name] = job
        return job

    def _tidy(self) -> None:
        """Folders of old jobs, of uploads that never ended, and what lost jobs left behind."""
        jobs = self.all()
        for job in [job for job in jobs if job.is_over][self._kept :]:
            shutil.rmtree(job.folder, ignore_errors=True)
        for job in jobs:
            if job.state == "lost":
                shutil.rmtree(job.folder / UPLOAD, ignore_errors=True)
        known = {job.id for job in jobs}
        for name in set(self._names()) - known:
            with contextlib.suppress(OSError):
                if (self._place / name).stat().st_mtime < time.time() - _ABANDONED_S:
                    shutil.rmtree(self._place / name, ignore_errors=True)


def _claim(folder: Path) -> bool:
    """Only one of several servers may start a job, or end it before it starts."""
    try:
        os.close(os.open(folder / CLAIM, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return False
    return True


def _note_end(folder: Path, by: str, reason: str) -> None:
    end = JobEnd(ended=time.time(), stopped_by="order" if by else "", reason=reason)
    with contextlib.suppress(OSError):
        write_record(folder, ENDED, end)


def _check_words(words: Sequence[str]) -> None:
    for word in words:
        if "\0" in word:
            raise ToolError("A command line can't contain a null character.")
        try:
            word.encode()
        except UnicodeEncodeError:
            raise ToolError(f"{word!r} is not valid text.") from None
