"""One job as its files and the table of processes show it, and what it prints, on disk: its
beginning and its end, however much comes between.

The beginning is in `output.log`. What comes later is in files that are named by where they begin,
of which the oldest are removed. A place in the output is always counted from its first byte.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import hmac
import os
import re
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, TypeVar

import msgspec
import psutil

from compilescope.base.processes.outcome import status_words
from compilescope.base.processes.table import is_running
from compilescope.base.settings import MADE_RUNS

REQUEST, STARTED, ENDED = "job.json", "keeper.json", "ended.json"
CLAIM = "claim"
"""Made by whoever starts the job, or ends it before it started: there is one such file only."""
STOP = "stop.json"
RUNS = "runs"
"""A line for the folder of each run that the command made."""
UPLOAD = "upload"
"""A folder for what the browser sent; removed when the job has ended."""

T = TypeVar("T")
State = Literal["waiting", "running", "ended", "stopped", "lost"]
_BIRTH_S = 30.0
"""How long a keeper may take from its start to its first sign of life. Chosen: long even for a busy
machine; then the job counts as lost."""


@dataclass(frozen=True)
class CommandJob:
    """One job in its state now."""

    id: str
    folder: Path
    request: JobRequest
    state: State
    begun: Started | None
    end: JobEnd | None
    stopping: StopOrder | None
    runs: tuple[str, ...]
    """Ids of the runs that it made, in their order; some may be deleted since."""

    @property
    def words(self) -> tuple[str, ...]:
        return self.request.words

    @property
    def cwd(self) -> str:
        return self.request.cwd

    @property
    def started(self) -> float | None:
        return None if self.begun is None else self.begun.started

    @property
    def ended(self) -> float | None:
        return None if self.end is None else self.end.ended

    @property
    def exit_status(self) -> int | None:
        """As subprocess has it: negative for a signal."""
        return None if self.end is None else self.end.status

    @property
    def seconds(self) -> float | None:
        """That it took so far; None: it didn't start, or the end is not known."""
        if self.started is None or self.state == "lost":
            return None
        until = time.time() if self.ended is None else self.ended
        return max(0.0, until - self.started)

    @property
    def is_over(self) -> bool:
        return self.state in ("ended", "stopped", "lost")

    @property
    def orphan(self) -> int | None:
        """The command's process, where it runs on without its keeper."""
        if self.state != "lost" or self.begun is None or self.begun.pid is None:
            return None
        pid = self.begun.pid
        since = self.begun.pid_at or self.begun.started
        return pid if is_running(pid, since=since) else None

    @property
    def line(self) -> str:
        return shlex.join(["compilescope", *self.words])

    @property
    def outcome(self) -> str:
        """How it ended, in a sentence; empty while it didn't."""
        if self.state == "lost":
            if self.orphan is not None:
                return f"Its keeper was killed; the command (process {self.orphan}) still runs."
            return "Its keeper was killed, so how it ended is unknown."
        if self.end is None:
            return ""
        if self.end.stopped_by != "order":
            return self.end.reason or "Finished with exit status 0."
        if self.end.status is None:
            return self.end.reason or "Stopped before it started."
        if self.end.status == 0:
            return "Stopped; it finished with exit status 0."
        how = status_words(self.end.status)
        return f"Stopped: {how[0].lower()}{how[1:]}"


def read_job(folder: Path, home: Path) -> CommandJob | None:
    """None: this folder is no job, or not yet."""
    # The end last: what ends while we read must not look lost.
    begun = read_record(folder, STARTED, Started)
    alive = begun is not None and (
        # A clock that was set meanwhile makes a process look younger than its record.
        is_running(begun.keeper, since=begun.started) or belongs(begun.keeper, folder)
    )
    end = read_record(folder, ENDED, JobEnd)
    request = read_record(folder, REQUEST, JobRequest)
    if request is None or request.id != folder.name:
        return None
    return CommandJob(
        id=request.id,
        folder=folder,
        request=request,
        state=_state(folder, end, begun, alive),
        begun=begun,
        end=end,
        stopping=read_record(folder, STOP, StopOrder),
        runs=_runs(folder, home),
    )


def belongs(pid: int, folder: Path) -> bool:
    """Is it the keeper of the job in this folder, or its command? A file that somebody else put
    there may name any process of ours."""
    try:
        process = psutil.Process(pid)
        made = process.environ().get(MADE_RUNS)
        return str(folder) in process.cmdline() or made == str(folder / RUNS)
    except (psutil.Error, ValueError, OverflowError):
        return False


def _state(folder: Path, end: JobEnd | None, begun: Started | None, alive: bool) -> State:
    if end is not None:
        return "stopped" if end.stopped_by else "ended"
    if begun is not None:
        return "running" if alive else "lost"
    try:
        claimed = (folder / CLAIM).stat().st_mtime
    except OSError:
        return "waiting"
    return "running" if time.time() < claimed + _BIRTH_S else "lost"


def _runs(folder: Path, home: Path) -> tuple[str, ...]:
    """Those in `home`: commands also make runs for themselves, elsewhere."""
    try:
        lines = (folder / RUNS).read_bytes().splitlines()
    except OSError:
        return ()
    paths = [Path(os.fsdecode(line)) for line in lines]
    return tuple(dict.fromkeys(path.name for path in paths if path.parent == home))


# The files of a job's folder. Each is written in one piece, so that no reader sees half of it.


class JobRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is to be done."""

    id: str
    words: tuple[str, ...]
    """Of the command line, after `compilescope`."""
    cwd: str
    created: float
    title: str = ""
    form: str = ""
    """The form that it came from, to fill in again."""
    values: dict[str, list[str]] = {}
    writes: tuple[str, ...] = ()
    """Files that it was asked to write."""
    limit_s: float | None = None
    output_bytes: int = 16 << 20
    seal: str = ""
    """Made with the server's token: what somebody else put into the folder is never run."""


class Started(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Written by the keeper once it hears orders."""

    keeper: int
    started: float
    pid: int | None = None
    """The command's own process."""
    pid_at: float | None = None
    """When it was there."""


class StopOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    at: float
    kill: bool = False


class JobEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How it ended."""

    ended: float
    status: int | None = None
    """As subprocess has it: negative for a signal; None: it never ran."""
    stopped_by: Literal["", "time", "order"] = ""
    reason: str = ""
    dropped_bytes: int = 0


def sealed(request: JobRequest, key: str) -> JobRequest:
    return msgspec.structs.replace(request, seal=_seal(request, key))


def has_seal(request: JobRequest, key: str) -> bool:
    return hmac.compare_digest(request.seal.encode(), _seal(request, key).encode())


def _seal(request: JobRequest, key: str) -> str:
    content = msgspec.json.encode(msgspec.structs.replace(request, seal=""))
    return hmac.new(key.encode(), content, hashlib.sha256).hexdigest()


def write_record(folder: Path, name: str, record: msgspec.Struct) -> None:
    part = folder / f".{name}.{os.getpid()}.part"
    part.write_bytes(msgspec.json.encode(record))
    part.replace(folder / name)


def read_record(folder: Path, name: str, kind: type[T]) -> T | None:
    """None: not there, or damaged."""
    try:
        return msgspec.json.decode((folder / name).read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, ValueError):
        return None


_HEAD = "output.log"
_LATER = "output-*.log"
_PIECES = 4
"""Files of the end that are kept whole, beside the one that is being written. Chosen: when the
oldest is removed, only a fifth of the end goes with it."""
_MOST_ESCAPE = 64
"""Bytes that a colour may take. Chosen: a bound; colours take far fewer."""
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\"
    r"|[ -/]*[0-OQ-WYZ\\`-~])"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class OutputLog:
    """Written by the keeper. A disk that is full costs output, never the job."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._head_bytes = most_bytes // 2
        self._piece_bytes = max(1, most_bytes // 2 // (_PIECES + 1))
        self._file: IO[bytes] = (folder / _HEAD).open("wb", buffering=0)
        self._room = self._head_bytes
        self._pieces: list[Path] = []
        self._end = 0
        self.dropped = 0
        """Bytes that are in no file any more."""

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            if not self._room:
                self._turn()
            part, rest = rest[: self._room], rest[self._room :]
            try:
                written = self._file.write(part)
            except OSError:
                written = 0
            # What could not be written is a gap; the next file begins behind it.
            self._end += len(part)
            self._room -= len(part)
            if written != len(part):
                self.dropped += len(part) - (written or 0)
                self._room = 0

    def close(self) -> None:
        self._file.close()

    def _turn(self) -> None:
        """Begin the next file; remove what is too much."""
        path = self._folder / f"output-{self._end}.log"
        with contextlib.suppress(OSError):
            opened = path.open("wb", buffering=0)
            self._file.close()
            self._file = opened
            self._pieces.append(path)
        self._room = self._piece_bytes
        while len(self._pieces) > _PIECES + 1:
            oldest = self._pieces.pop(0)
            with contextlib.suppress(OSError):
                self.dropped += oldest.stat().st_size
                oldest.unlink()


@dataclass(frozen=True)
class Chunk:
    """A stretch of the output."""

    start: int
    data: bytes
    skipped: int = 0
    """Bytes before it that were asked for and are not there."""

    @property
    def end(self) -> int:
        return self.start + len(self.data)


def read_output(folder: Path, start: int, most: int) -> Chunk:
    """What was printed from `start` on, as far as one file holds it; empty at the end."""
    for begins, path in _files(folder):
        try:
            size = path.stat().st_size
            if begins + size <= start:
                continue
            at = max(start, begins)
            with path.open("rb") as file:
                file.seek(at - begins)
                return Chunk(at, file.read(most), at - start)
        except OSError:
            continue  # Removed meanwhile: the next one is what is left.
    return Chunk(start, b"")


def output_end(folder: Path) -> int:
    """How many bytes were printed so far."""
    end = 0
    for begins, path in _files(folder):
        with contextlib.suppress(OSError):
            end = max(end, begins + path.stat().st_size)
    return end


def whole_output(folder: Path) -> Iterator[bytes]:
    """All that is kept now; a line says where something is missing."""
    at, end = 0, output_end(folder)
    # Not further: a program that prints without end would never let go of the reader.
    while at < end and (chunk := read_output(folder, at, 1 << 18)).data:
        if chunk.skipped:
            yield f"\n[{chunk.skipped:,} bytes are not kept]\n".encode()
        yield chunk.data
        at = chunk.end


def _files(folder: Path) -> list[tuple[int, Path]]:
    later = []
    for path in folder.glob(_LATER):
        number = path.stem.partition("-")[2]
        if number.isdigit():
            later.append((int(number), path))
    return [(0, folder / _HEAD), *sorted(later)]


def whole_characters(data: bytes) -> int:
    """How many of these bytes can be shown now: neither a character nor an escape is torn apart."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    end = len(data) - len(decoder.getstate()[0])
    escape = data.rfind(b"\x1b", max(0, end - _MOST_ESCAPE), end)
    if escape >= 0 and not _ESCAPE.match(data[escape:end].decode("latin-1")):
        end = escape
    # A line end of two characters stays one.
    return end - 1 if data[end - 1 : end] == b"\r" else end


def plain_text(data: bytes) -> str:
    """Without colors and control characters. A carriage return stays: it begins a line anew."""
    text = data.decode("utf-8", "replace")
    return _CONTROL.sub("", _ESCAPE.sub("", text)).replace("\r\n", "\n")


def settled(text: str) -> str:
    """Lines as a terminal leaves them once progress has been drawn over."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
