"""Writes the Run that a log becomes: header, one event file a process, artifacts in one pack.

`RunWriter` is the `Writer` of `logs.format`. Several of them, in several processes, may write into
one folder, each with a pack of its own; `join_packs` makes one of those. Events are buffered: a
log can be read again, so nothing is lost that a crash could lose.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from compilescope.logs.source_files import SourceFiles
from compilescope.record.artifacts import ARTIFACTS, DiskArtifacts
from compilescope.record.bodies import (
    Body,
    LogRead,
    ProcessEnded,
    ProcessStarted,
    SourceChecked,
    SourceSeen,
    Unknown,
)
from compilescope.record.event import Event, encode
from compilescope.record.packs import LARGEST_TEXT, SUFFIX, Pack, PackWriter
from compilescope.record.stack import Frame

_AS_THEY_ARE = 1 << 22
"""Bytes of a log's first texts that are not compressed. Chosen: packing takes a twentieth of the
CPU time of reading a small log, and a few megabytes of disk are no loss."""
_BUFFER = 1 << 16
"""Bytes of events that wait to be written together. Chosen: some hundred events a write."""
_SECOND_LIFE = 10_000_000
"""Added to the id of a process where another one has it."""
_PROCESS_MARK = ".process-"
_MOST_FILES = 1_000
"""Event files of a run; processes beyond share the last one. Chosen: more than most jobs have
processes, and to make a file takes longer than to read a short log."""


class _Process:
    """One process of the program, and its event file."""

    def __init__(self, rank: int, pid: int, claimed: ClaimedName) -> None:
        self.key = (rank, pid)
        self.rank = rank
        self.pid, self._path, self.name = claimed
        self._lines: list[bytes] = []
        self._size = 0
        self.sequence = 1  # The first number is for the event that begins it.
        self.first_ns = 0
        self.last_ns = 0
        self.told: dict[str, str] = {}
        self.cut = False

    def append(self, event: Event) -> None:
        """Raises OverflowError where a number in it is larger than JSON can hold."""
        line = encode(event)
        self._lines.append(line)
        self._size += len(line)
        if self._size > _BUFFER:
            self.flush()

    def flush(self) -> None:
        if self._lines:
            with open(self._path, "ab") as file:
                file.write(b"\n".join(self._lines) + b"\n")
            self._lines, self._size = [], 0


class ClaimedName(NamedTuple):
    """What a process of the log is called in the run."""

    pid: int
    path: str
    """Of its event file."""
    name: str


class ProcessNames(Protocol):
    """Gives processes their names. Those of several machines, or containers, may share an id: in a
    run each has its own."""

    def claim(self, rank: int, pid: int) -> ClaimedName: ...


class _SharedFolder:
    """As `EventFile.claim`: exclusive creation settles who is the first of a rank, and of an id."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._lives: dict[int, int] = {}
        """How many are known to have each id."""

    def claim(self, rank: int, pid: int) -> ClaimedName:
        life = self._lives[pid] if pid in self._lives else _first_life(self._folder, pid)
        while not _is_new(_mark(self._folder, pid + life * _SECOND_LIFE)):
            life += 1
        self._lives[pid] = life + 1
        pid += life * _SECOND_LIFE
        path = os.path.join(self._folder, f"events-{rank}.jsonl")
        if _is_new(path):
            return ClaimedName(pid, path, str(rank))
        path = os.path.join(self._folder, f"events-{rank}.{pid}.jsonl")
        _is_new(path)
        return ClaimedName(pid, path, f"{rank}:{pid}")


class _OwnFolder:
    """Where nobody else writes, nothing has to be made to be sure: a folder of logs may have
    thousands of processes. Nor has each of them a file of its own: an event says whose it is."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._lives: dict[int, int] = {}
        self._pids: set[int] = set()
        self._ranks: set[int] = set()
        self._file = ""

    def claim(self, rank: int, pid: int) -> ClaimedName:
        life = self._lives.get(pid, 0)
        while pid + life * _SECOND_LIFE in self._pids:
            life += 1
        self._lives[pid] = life + 1
        pid += life * _SECOND_LIFE
        self._pids.add(pid)
        name, file = f"{rank}:{pid}", f"events-{rank}.{pid}.jsonl"
        if rank not in self._ranks:
            self._ranks.add(rank)
            name, file = str(rank), f"events-{rank}.jsonl"
        if len(self._pids) <= _MOST_FILES:
            self._file = f"{self._folder}{os.sep}{file}"
        return ClaimedName(pid, self._file, name)


def _first_life(folder: str, pid: int) -> int:
    """How many have this id already. By halves: logs of thousands of containers may share one."""
    if not _is_taken(folder, pid):
        return 0
    taken, free = 0, 1
    while _is_taken(folder, pid + free * _SECOND_LIFE):
        taken, free = free, 2 * free
    while free - taken > 1:
        middle = (taken + free) // 2
        if _is_taken(folder, pid + middle * _SECOND_LIFE):
            taken = middle
        else:
            free = middle
    return free


def _is_taken(folder: str, pid: int) -> bool:
    return os.path.lexists(_mark(folder, pid))


def _mark(folder: str, pid: int) -> str:
    return os.path.join(folder, f"{_PROCESS_MARK}{pid}")


def _is_new(path: str) -> bool:
    try:
        with open(path, "xb"):
            return True
    except FileExistsError:
        return False


def remove_marks(folder: Path) -> None:
    """Once all writers are done."""
    for path in folder.glob(f"{_PROCESS_MARK}*"):
        path.unlink()


class RunWriter:
    """Makes events and artifacts of what readers find."""

    def __init__(
        self,
        folder: Path,
        *,
        packed: bool = True,
        source_folders: tuple[str, ...] = (),
        alone: bool = False,
    ) -> None:
        """Into the folder of a run, which exists; `alone` where it is new and no other writes into
        it. A pack can be read once it is closed: who wants to be read meanwhile writes each text
        into a file of its own."""
        self._claims: ProcessNames = (_OwnFolder if alone else _SharedFolder)(str(folder))
        self._processes: dict[tuple[int, int], _Process] = {}
        self._pack = PackWriter(folder / ARTIFACTS, _AS_THEY_ARE) if packed else None
        self._files = DiskArtifacts(folder / ARTIFACTS)
        self._source_files = SourceFiles(source_folders)
        self.events = 0

    def event(
        self,
        body: Body | Unknown,
        *,
        time_ns: int,
        pid: int = 0,
        rank: int = 0,
        compile_id: str | None = None,
        stack: Sequence[Frame] = (),
        epoch: int = 0,
        thread: int = 0,
    ) -> str:
        process = self._process(rank, pid)
        name = f"{process.name}.{process.sequence}"
        process.sequence += 1
        if not process.first_ns or time_ns < process.first_ns:
            process.first_ns = time_ns
        if time_ns > process.last_ns:
            process.last_ns = time_ns
        process.append(
            Event(
                id=name,
                time_ns=time_ns,
                pid=process.pid,
                rank=rank,
                thread=thread,
                epoch=epoch,
                compile_id=compile_id,
                stack=tuple(stack),
                body=body,
            )
        )
        self.events += 1
        return name

    def artifact(self, text: str | bytes, kind: str) -> str:
        if isinstance(text, str):
            data = text.encode("utf-8", "surrogatepass")
        elif text.isascii():
            data = text
        else:
            data = text.decode("utf-8", "replace").encode()
        if self._pack is None:
            return self._files.put(data[:LARGEST_TEXT].decode("utf-8", "replace"), kind)
        return f"{self._pack.put(data[:LARGEST_TEXT]).hex()}.{kind}"

    def started(
        self, *, pid: int = 0, rank: int = 0, torch: str = "", device: str = "", python: str = ""
    ) -> None:
        told = self._process(rank, pid).told
        for key, value in (("torch", torch), ("device", device), ("python", python)):
            if value:
                told[key] = value

    def cut(self, *, pid: int = 0, rank: int = 0) -> None:
        self._process(rank, pid).cut = True

    def sources(self, frames: Iterable[Frame]) -> None:
        for frame in frames:
            self._source_files.take(frame)

    def _keep_sources(self) -> None:
        """Once all is known that the log shows of each file."""
        process = next(iter(self._processes.values()), None)
        if process is None:
            return
        rank, pid = process.key
        for found in self._source_files.found():
            body = SourceChecked(found.file, found.here, found.agrees, found.problem)
            self.event(body, time_ns=process.last_ns, pid=pid, rank=rank)
            if not found.problem:
                seen = SourceSeen(found.file, self.artifact(found.text, "py"))
                self.event(seen, time_ns=process.last_ns, pid=pid, rank=rank)

    def told_of(self, read: LogRead) -> None:
        """Append what is known of a source as a whole, to a process that it told of."""
        process = next(reversed(self._processes.values()), None) or self._process(0, 0)
        self.event(read, time_ns=process.last_ns, pid=process.key[1], rank=process.key[0])

    def flush(self) -> None:
        for process in self._processes.values():
            process.flush()

    def close(self) -> None:
        """Begin and end every process, and give the pack its name."""
        self._keep_sources()
        for process in self._processes.values():
            self._append_ends(process)
            process.flush()
        if self._pack is not None:
            self._pack.close()
            self._pack.hand_over()

    def discard(self) -> None:
        if self._pack is not None:
            self._pack.discard()

    def _append_ends(self, process: _Process) -> None:
        told = process.told
        started = ProcessStarted(
            argv=(),
            python=told.get("python", ""),
            torch=told.get("torch", ""),
            parent_pid=0,
            device=told.get("device", ""),
        )
        bounds: list[tuple[int, int, Body]] = [(0, process.first_ns - 1, started)]
        if not process.cut:
            bounds.append((process.sequence, process.last_ns + 1, ProcessEnded()))
        for sequence, time_ns, body in bounds:
            process.append(
                Event(
                    id=f"{process.name}.{sequence}",
                    time_ns=time_ns,
                    pid=process.pid,
                    rank=process.rank,
                    body=body,
                )
            )

    def _process(self, rank: int, pid: int) -> _Process:
        key = (rank, pid)
        found = self._processes.get(key)
        if found is None:
            found = self._processes[key] = _Process(rank, pid, self._claims.claim(rank, pid))
        return found


def join_packs(folder: Path) -> None:
    """Make one pack of those that several writers left: a text that all ranks have is kept once."""
    artifacts = folder / ARTIFACTS
    paths = sorted(artifacts.glob(f"*{SUFFIX}"))
    if len(paths) < 2:
        return
    joined = PackWriter(artifacts)
    try:
        for path in paths:
            joined.take(Pack(path))
        whole = joined.close()
    except BaseException:
        joined.discard()
        raise
    for path in paths:
        if path != whole:
            path.unlink()
