"""The files of a job's folder. Each is written in one piece, so that no reader sees half of it."""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

REQUEST, STARTED, ENDED = "job.json", "keeper.json", "ended.json"
CLAIM = "claim"
"""Made by whoever starts the job, or ends it before it started: there is one such file only."""
STOP = "stop.json"
RUNS = "runs"
"""A line for the folder of each run that the command made."""
UPLOAD = "upload"
"""A folder for what the browser sent; removed when the job has ended."""

T = TypeVar("T")


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
