"""Where a sweep's results are kept: a plan, a record for each finished job, and what jobs kept.

    sweep.json            the plan
    jobs/KEY.json         the result of a finished job; that it exists is what makes it finished
    archives/KEY.zip      what the job kept
    lease.json            the driver that writes here now

A store is a folder by URL: local, in memory, or an object store; each file in it is written whole
or not at all. Only the driver writes, so nodes need no credentials, and only one driver at a time:
object stores have no locks, so the holder rewrites its lease every few seconds; one that has not
been rewritten for a minute belongs to nobody, and on the same machine one whose process is gone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import fsspec
import msgspec
import psutil
from fsspec.implementations.local import LocalFileSystem

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import clock
from compilescope.base.version import VERSION
from compilescope.record.jobs import JobState
from compilescope.scale.jobs.job import Finished, Job, JobResult

_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs"}
_WAITS_S = (0.5, 1.0, 2.0, 4.0)
"""Between tries of a store that does not answer. Chosen: doubled each time, 7.5 s together: longer
than a hiccup, shorter than a person's patience."""
_THREADS = 32
"""That read from a store over the network. Chosen: each waits for an answer most of the time."""
_CHUNK = 512
"""Files that are read ahead. Chosen: it bounds memory, however many jobs a sweep has."""
_MOST_WORDS = 300
"""Letters of a store's error. Chosen: some send a page of XML."""

_LATER = "What is in the store stays valid: run again with --resume once the store can be reached."

T = TypeVar("T")


class StorePlace:
    """Small files, each written at once or not at all."""

    def __init__(self, url: str, *, waits_s: tuple[float, ...] = _WAITS_S) -> None:
        self.url = re.sub(r"//[^/@]*@", "//", url)
        """As it may be shown: without a password."""
        self._waits_s = waits_s
        try:
            self._system, self._root = fsspec.core.url_to_fs(url)
        except ImportError as error:
            raise _no_driver(self.url, error) from None
        except Exception as error:  # Drivers raise what they like.
            raise ToolError(f"Cannot open the store {self.url}: {_words(error)}") from None

    @property
    def is_local(self) -> bool:
        return isinstance(self._system, LocalFileSystem)

    @property
    def is_shared(self) -> bool:
        """Can others write to it while we read? Not to a dictionary of this process."""
        return "memory" not in _protocols(self._system)

    @property
    def _is_far(self) -> bool:
        return self.is_shared and not self.is_local

    def write(self, name: str, data: bytes, *, tries: int | None = None) -> None:
        """Replaces what is there; a reader finds the old or the new, never half of it."""
        self._trying("write to", lambda: self._write(self._path(name), data), tries)

    def create(self, name: str, data: bytes) -> bool | None:
        """Write a file that nobody else has; False: somebody has. None: can't be done here."""
        if not self.is_local:
            return None
        path = self._path(name)
        aside = Path(f"{path}.{uuid.uuid4().hex}.part")
        try:
            aside.parent.mkdir(parents=True, exist_ok=True)
            aside.write_bytes(data)
            os.link(aside, path)
        except FileExistsError:
            return False
        except OSError:  # No hard links there, or no way to write: `write` says which.
            return None
        finally:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
        return True

    def read(self, name: str, *, tries: int | None = None) -> bytes | None:
        """None: there is no such file."""
        return self._trying("read", lambda: self._read(self._path(name)), tries)

    def remove(self, name: str) -> None:
        def remove() -> None:
            if self._read(self._path(name)) is not None:
                self._system.rm_file(self._path(name))

        self._trying("write to", remove)

    def names(self, folder: str, suffix: str) -> list[str]:
        """The files of a folder, by one listing."""
        found = self._trying("read", lambda: self._listing(self._path(folder)))
        names = sorted(str(path).rstrip("/").rpartition("/")[2] for path in found)
        return [f"{folder}/{name}" for name in names if name.endswith(suffix)]

    def read_many(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Each with its contents, in order; those that are gone meanwhile are left out."""
        waiting = list(names)
        with ThreadPoolExecutor(_THREADS if self._is_far else 1) as pool:
            for start in range(0, len(waiting), _CHUNK):
                chunk = waiting[start : start + _CHUNK]
                for name, data in zip(chunk, pool.map(self.read, chunk), strict=True):
                    if data is not None:
                        yield name, data

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def _write(self, path: str, data: bytes) -> None:
        if not self.is_local:
            self._system.pipe_file(path, data)
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        aside = Path(f"{path}.part")
        aside.write_bytes(data)
        os.replace(aside, path)

    def _read(self, path: str) -> bytes | None:
        try:
            return Path(path).read_bytes() if self.is_local else self._system.cat_file(path)
        except FileNotFoundError:
            return None

    def _listing(self, path: str) -> list[str]:
        self._system.invalidate_cache()
        try:
            found: list[str] = self._system.ls(path, detail=False)
        except FileNotFoundError:
            return []
        return found

    def _trying(self, verb: str, act: Callable[[], T], tries: int | None = None) -> T:
        """A store may be away for a moment; after some tries it is away."""
        waits = self._waits_s if tries is None else self._waits_s[: tries - 1]
        for wait_s in (*waits, None):
            try:
                return act()
            except ImportError as error:
                raise _no_driver(self.url, error) from None
            except Exception as error:  # Drivers raise what they like.
                if wait_s is None:
                    said = f"Cannot {verb} the store {self.url}: {_words(error)}"
                    raise ToolError(said, _LATER if tries is None else "") from None
            time.sleep(wait_s)
        raise AssertionError("the last try returns or raises")


def _no_driver(url: str, error: ImportError) -> ToolError:
    protocol = url.partition("://")[0]
    package = _PACKAGES.get(protocol, "")
    if not package:
        said = f"{protocol}:// stores need a package that is not installed here."
        return ToolError(said, _words(error))
    said = f"{protocol}:// stores need {package}, which is not installed here."
    return ToolError(said, f"Run: pip install {package}")


def _protocols(system: Any) -> tuple[str, ...]:
    named = system.protocol
    return (named,) if isinstance(named, str) else tuple(named)


def _words(error: BaseException) -> str:
    said = error.strerror if isinstance(error, OSError) else ""
    said = said or next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    said = (said or type(error).__name__)[:_MOST_WORDS]
    return said if said.endswith(".") else f"{said}."


_FILE = "lease.json"
# Chosen: five beats may be missed, by a slow store or a busy machine, before a holder counts as
# gone; and nobody waits longer than a minute for a store whose sweep was killed.
_BEAT_S = 10.0
_STALE_S = 60.0
# Chosen: how long after writing one looks whether another wrote at the same moment; an object store
# shows a write later than a disk does.
_SETTLE_S = 1.0
_LOCAL_SETTLE_S = 0.2


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who writes to a store."""

    token: str
    machine: str
    namespace: str
    """Process ids mean something within it only."""
    pid: int
    started: float
    """When that process began: ids are used again."""
    beat: float


class Lease:
    """Taken by `take`, kept by a thread, given back by `release`."""

    def __init__(
        self,
        place: StorePlace,
        *,
        beat_s: float = _BEAT_S,
        stale_s: float = _STALE_S,
        settle_s: float | None = None,
    ) -> None:
        self._place = place
        self._beat_s = beat_s
        self._stale_s = stale_s
        far_s = _LOCAL_SETTLE_S if place.is_local else _SETTLE_S
        self._settle_s = settle_s if settle_s is not None else far_s * place.is_shared
        self._token = uuid.uuid4().hex
        self._stop = threading.Event()
        self._beater: threading.Thread | None = None
        self._lost = ""

    def take(self) -> str:
        """A sentence where it was another's, who is gone. A ToolError where another holds it."""
        held = self._read(tries=1)
        if held is not None and not _is_gone(held, self._stale_s):
            raise _taken(held, self._place.url, self._stale_s)
        try:
            self._write_first(held)
        except BaseException:
            self._remove()
            raise
        self._beater = threading.Thread(target=self._beat, name="store-lease", daemon=True)
        self._beater.start()
        if held is None:
            return ""
        return f"Took over the store from a sweep on {held.machine} that ended without closing it."

    def check(self) -> None:
        """Before every write: is it still ours?"""
        if self._lost:
            raise ToolError(self._lost)

    def release(self) -> None:
        if self._beater is None:
            return
        self._stop.set()
        self._beater.join()
        self._beater = None
        self._remove()

    def _write_first(self, held: Holder | None) -> None:
        made = self._place.create(_FILE, self._mine()) if held is None else None
        if made is None:
            self._place.write(_FILE, self._mine(), tries=1)
            # Two may have come at once. The later one's lease stays, and the earlier one sees it.
            time.sleep(self._settle_s)
        now = self._read(tries=1)
        if now is None or now.token != self._token:
            raise _taken(now, self._place.url, self._stale_s)

    def _remove(self) -> None:
        with contextlib.suppress(ToolError):
            held = self._read(tries=1)
            if held is not None and held.token == self._token:
                self._place.remove(_FILE)

    def _beat(self) -> None:
        last = clock()
        while not self._stop.wait(self._beat_s):
            with contextlib.suppress(ToolError):
                held = self._read()
                if held is not None and held.token != self._token:
                    where = f"{held.machine}, process {held.pid}"
                    self._lost = f"Another sweep ({where}) took over the store {self._place.url}."
                    return
                self._place.write(_FILE, self._mine())
                last = clock()
            if clock() - last > self._stale_s:
                self._lost = f"The store {self._place.url} has been out of reach for too long."
                return

    def _mine(self) -> bytes:
        holder = Holder(
            token=self._token,
            machine=socket.gethostname(),
            namespace=_namespace(),
            pid=os.getpid(),
            started=_started(os.getpid()),
            beat=time.time(),
        )
        return msgspec.json.encode(holder)

    def _read(self, tries: int | None = None) -> Holder | None:
        data = self._place.read(_FILE, tries=tries)
        with contextlib.suppress(msgspec.MsgspecError):
            return None if data is None else msgspec.json.decode(data, type=Holder)
        return None


def _is_gone(held: Holder, stale_s: float) -> bool:
    if (held.machine, held.namespace) == (socket.gethostname(), _namespace()):
        return abs(_started(held.pid) - held.started) > 1
    return time.time() - held.beat > stale_s


def _started(pid: int) -> float:
    """0: there is no such process."""
    try:
        process = psutil.Process(pid)
        return 0.0 if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.Error:
        return 0.0


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _taken(held: Holder | None, url: str, stale_s: float) -> ToolError:
    who = f" on {held.machine}, process {held.pid}," if held is not None else ""
    return ToolError(
        f"Another sweep{who} is writing to the store {url}.",
        f"Wait for it to end, or name another store. If its machine died, wait {stale_s:.0f} s.",
    )


_PLAN = "sweep.json"
# Chosen: letters of a job's name in a file's name, and damaged files that a warning names.
_MOST_NAME = 60
_MOST_NAMED = 3


class StorePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a store's results belong to. Results of another plan can't be mixed with them."""

    id: str
    version: str
    """Of compilescope."""
    jobs: int
    jobs_hash: str
    options: dict[str, Any] = {}
    """Whatever changes the results, by the name that a user knows it under."""


def plan_of(jobs: Iterable[Job], options: dict[str, Any]) -> StorePlan:
    """A new plan. Two jobs of one name: a ToolError."""
    found = hashlib.sha256()
    names: set[str] = set()
    for job in jobs:
        if job.name in names:
            raise ToolError(f"Two jobs are named {job.name}.", "Give each job a name of its own.")
        names.add(job.name)
        found.update(msgspec.json.encode(job, order="sorted") + b"\n")
    plain = msgspec.json.decode(msgspec.json.encode(options))
    return StorePlan(
        id=uuid.uuid4().hex[:12],
        version=VERSION,
        jobs=len(names),
        jobs_hash=found.hexdigest(),
        options=plain,
    )


def key_of(name: str) -> str:
    """A file name for any job name: readable, and different for different names."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:_MOST_NAME].strip(".-")
    return f"{plain or 'job'}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


class _RecordHead(msgspec.Struct):
    """The part of a record that says whose it is: all that resuming needs."""

    name: str
    state: JobState


class Store:
    """Reading needs nothing; writing needs `begin`, and `close` (or `with`) at its end."""

    def __init__(
        self, url: str, *, place: StorePlace | None = None, lease: Lease | None = None
    ) -> None:
        self._place = place or StorePlace(url)
        self._lease = lease or Lease(self._place)
        self._holds = False
        self.url = self._place.url
        self.notes: list[str] = []
        """What a reader of the sweep must know of its store, in sentences."""

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, plan: StorePlan, *, resume: bool = False) -> StorePlan:
        """Take the store for this plan; the plan as it is stored. A ToolError where it can't be
        written to, or holds something else."""
        taken_over = self._lease.take()
        self._holds = True
        try:
            if taken_over:
                self.notes.append(taken_over)
            return self._begun(plan, resume)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._holds:
            self._lease.release()
            self._holds = False

    def sweep(self) -> StorePlan | None:
        """The plan of what is here; None: nothing is."""
        data = self._place.read(_PLAN)
        try:
            return None if data is None else msgspec.json.decode(data, type=StorePlan)
        except msgspec.MsgspecError:
            raise ToolError(
                f"The store {self.url} has a {_PLAN} that is not readable.",
                "Name another store, or empty this one.",
            ) from None

    def names(self) -> frozenset[str]:
        """The finished jobs. A record that is not readable is none: its job runs again."""
        found = set()
        garbled = []
        for path, data in self._records():
            named = _decoded(data, _RecordHead)
            if named is not None and path == _record(named.name):
                found.add(named.name)
            else:
                garbled.append(path)
        if garbled and _garbled(garbled) not in self.notes:
            self.notes.append(_garbled(garbled))
        return frozenset(found)

    def results(self) -> Iterator[JobResult]:
        """The finished jobs' results, one after the other, in the order of their keys."""
        for path, data in self._records():
            result = _decoded(data, JobResult)
            if result is not None and path == _record(result.name):
                yield result

    def put(self, finished: Finished) -> JobResult:
        """Keep a result; when this returns, the job is finished for good."""
        self._lease.check()
        result = finished.result
        if finished.archive:
            archive = _archive(result.name)
            self._place.write(archive, finished.archive)
            result = msgspec.structs.replace(result, archive=archive)
        self._place.write(_record(result.name), msgspec.json.encode(result))
        return result

    def archive(self, name: str) -> bytes:
        """A zip file; empty where the job kept nothing."""
        return self._place.read(_archive(name)) or b""

    def _begun(self, plan: StorePlan, resume: bool) -> StorePlan:
        stored = self.sweep()
        if stored is None:
            self._place.write(_PLAN, msgspec.json.encode(plan), tries=1)
            return plan
        different = _differences(stored, plan)
        if different:
            raise ToolError(
                f"The store {self.url} holds another sweep: {'; '.join(different)}.",
                "Name another store, or run the sweep as it was begun.",
            )
        done = 0 if resume else len(self.names())
        if done:
            raise ToolError(
                f"The store {self.url} already holds {done} of {stored.jobs} results of this "
                "sweep.",
                "Add --resume to continue it, or name another store.",
            )
        return stored

    def _records(self) -> Iterator[tuple[str, bytes]]:
        return self._place.read_many(self._place.names("jobs", ".json"))


def _record(name: str) -> str:
    return f"jobs/{key_of(name)}.json"


def _archive(name: str) -> str:
    return f"archives/{key_of(name)}.zip"


def _decoded(data: bytes, kind: type[msgspec.Struct]) -> Any:
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(data, type=kind)
    return None


def _garbled(paths: list[str]) -> str:
    named = ", ".join(paths[:_MOST_NAMED]) + (", …" if len(paths) > _MOST_NAMED else "")
    if len(paths) == 1:
        return f"1 result in the store is not readable, so its job runs again: {named}."
    return f"{len(paths)} results in the store are not readable, so their jobs run again: {named}."


def _differences(stored: StorePlan, plan: StorePlan) -> list[str]:
    found = []
    if stored.version != plan.version:
        found.append(f"made by compilescope {stored.version}, not {plan.version}")
    for name in sorted({*stored.options, *plan.options}):
        before, now = stored.options.get(name), plan.options.get(name)
        if before != now:
            found.append(f"{name} was {_value(before)}, not {_value(now)}")
    if stored.jobs != plan.jobs:
        found.append(f"{stored.jobs} jobs, not {plan.jobs}")
    elif not found and stored.jobs_hash != plan.jobs_hash:
        found.append("its jobs are not the same")
    return found


def _value(value: Any) -> str:
    return "not set" if value is None else msgspec.json.encode(value).decode()
