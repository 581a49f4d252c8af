"""Ranks: the processes of a job that torchrun starts. What they write is kept by rank, since in one
stream their lines come in any order; and so is the region that one of them could not repeat alone.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from compilescope.base.patterns import late
from compilescope.base.processes.outcome import ran_out, reason_of
from compilescope.base.settings import env_rank, is_rank

_NOTE = "collective"
_FIRST = late(
    r"Root Cause \(first observed failure\):"
    r".*?rank +: (?P<rank>\d+).*?exitcode +: (?P<status>-?\d+)",
    re.DOTALL,
)
"""What torchrun writes at its end (torch 2.13)."""


def separate_streams(folder: Path) -> None:
    """What this process writes, and what it starts, goes to files of its rank."""
    if not is_rank():
        return  # The launcher itself.
    for number, name in ((1, "stdout"), (2, "stderr")):
        with open(folder / f"rank-{env_rank():05}.{name}", "ab") as stream:
            os.dup2(stream.fileno(), number)


def read_stdout(folder: Path) -> bytes:
    """Of all ranks, one after the other."""
    return b"".join(each.read_bytes() for each in sorted(folder.glob("rank-*.stdout")))


def read_stderr(folder: Path) -> bytes:
    """Of all ranks; last the one that failed first, since the others fail for want of it."""
    written = [
        (each.stat().st_mtime_ns, each.read_bytes()) for each in folder.glob("rank-*.stderr")
    ]
    written.sort(key=lambda each: (b"Traceback (most recent call last)" in each[1], -each[0]))
    return b"".join(text for _, text in written)


def why_a_rank_failed(folder: Path, said: bytes) -> str:
    """In a sentence, by what torchrun said at its end; empty where it does not say so."""
    first = _FIRST.search(said.decode(errors="replace"))
    if first is None:
        return ""
    rank, status = int(first["rank"]), int(first["status"])
    try:
        written = (folder / f"rank-{rank:05}.stderr").read_bytes()
    except OSError:
        written = b""
    exhausted = ran_out(status, "", written, None) if status > 0 else False
    return f"rank {rank}: {reason_of(status, '', written, None, None, exhausted)}"


def note_collective(folder: Path, region: int) -> None:
    """A replay of this region was about to wait for other ranks."""
    (folder / _NOTE).write_text(str(region), encoding="utf-8")


def read_collective(folder: Path) -> int | None:
    """The number of the region; None where no replay came to that."""
    try:
        return int((folder / _NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
