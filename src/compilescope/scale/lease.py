"""One driver at a time writes to a store: a file says who, and that it is still there.

Object stores have no locks. The holder rewrites its lease every few seconds; one that has not been
rewritten for a minute belongs to nobody, and on the same machine one whose process is gone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid

import msgspec
import psutil

from compilescope.errors import ToolError
from compilescope.scale.place import StorePlace

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
        last = time.monotonic()
        while not self._stop.wait(self._beat_s):
            with contextlib.suppress(ToolError):
                held = self._read()
                if held is not None and held.token != self._token:
                    where = f"{held.machine}, process {held.pid}"
                    self._lost = f"Another sweep ({where}) took over the store {self._place.url}."
                    return
                self._place.write(_FILE, self._mine())
                last = time.monotonic()
            if time.monotonic() - last > self._stale_s:
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
