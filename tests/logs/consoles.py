"""Reads console text into a run that lives in memory, and makes damaged copies of logs."""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from compilescope.logs.format import LogSource, ReadTally
from compilescope.logs.text.engine import text_reader
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import Body, ProcessEnded, ProcessStarted, Unknown
from compilescope.record.event import Event
from compilescope.record.header import RunHeader
from compilescope.record.run import Run
from compilescope.record.stack import Frame

GOLDEN = Path(__file__).parent / "golden" / "console"
WRITTEN_NS = 1_794_960_000 * 10**9
"""The day after the shared logs were made."""
B = TypeVar("B")


class MemoryWriter:
    """The Writer of a run in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.artifacts = MemoryArtifacts()
        self.cuts: list[tuple[int, int]] = []
        self._processes: set[tuple[int, int]] = set()

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
        self._processes.add((rank, pid))
        name = f"{rank}:{pid}.{len(self.events)}"
        self.events.append(
            Event(
                id=name,
                time_ns=time_ns,
                pid=pid,
                rank=rank,
                thread=thread,
                epoch=epoch,
                compile_id=compile_id,
                stack=tuple(stack),
                body=body,
            )
        )
        return name

    def artifact(self, text: str | bytes, kind: str) -> str:
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        return self.artifacts.put(text, kind)

    def started(
        self, *, pid: int = 0, rank: int = 0, torch: str = "", device: str = "", python: str = ""
    ) -> None:
        pass

    def cut(self, *, pid: int = 0, rank: int = 0) -> None:
        self.cuts.append((rank, pid))

    def sources(self, frames: Iterable[Frame]) -> None:
        pass

    def run(self) -> Run:
        ends = [
            Event(id=f"{rank}:{pid}.{name}", time_ns=0, pid=pid, rank=rank, body=body)
            for rank, pid in sorted(self._processes)
            for name, body in (("s", ProcessStarted((), "", "2.13", 0)), ("e", ProcessEnded()))
        ]
        return Run(RunHeader(run="logs", tool="test"), [*ends, *self.events], self.artifacts)


def read(data: bytes, *, block: int = 1 << 21) -> tuple[Run, ReadTally]:
    """The run that a log becomes, fed in blocks of whole lines."""
    writer = MemoryWriter()
    source = LogSource("console.log", WRITTEN_NS)
    reader = text_reader(writer, source)
    for part in blocks_of(data, block):
        reader.feed(part)
    reader.finish()
    return writer.run(), source.tally


def blocks_of(data: bytes, size: int) -> Iterable[bytes]:
    at = 0
    while at < len(data):
        end = data.rfind(b"\n", at, at + size) + 1
        if end <= at:
            end = (data.find(b"\n", at + size) + 1) or len(data)
        yield data[at:end]
        at = end


def golden(name: str) -> bytes:
    return lzma.decompress((GOLDEN / f"{name}.log.xz").read_bytes())


def golden_names() -> list[str]:
    return sorted(path.name.removesuffix(".log.xz") for path in GOLDEN.glob("*.log.xz"))


def of(run: Run, kind: type[B]) -> list[B]:
    return [body for _, body in run.of(kind)]


def facts(run: Run) -> dict[str, int]:
    """How many events of each kind there are."""
    counts: dict[str, int] = {}
    for event in run.events:
        name = type(event.body).__name__
        counts[name] = counts.get(name, 0) + 1
    return counts
