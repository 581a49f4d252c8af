"""What a log format is, and what its reader is handed.

A format is a module of `logs.formats` with a `FORMAT`. `logs.reader` opens each source, asks every
format whether the beginning looks like its own, and feeds the bytes to the readers in turn: a
structured format hands back the lines that are not its own, and the text engine gets those. So any
mix in one file is read in one pass.

Invariant: a reader never raises on anything that a file may hold. What it cannot read it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol

import msgspec

from compilescope.record.bodies import Body, Unknown
from compilescope.record.stack import Frame

# Chosen: enough to see what kind of lines could not be read.
_MOST_SAMPLES = 5
_LONGEST_SAMPLE = 200


class ReadTally(msgspec.Struct):
    """What is known of one source as a whole; readers fill it in as they go."""

    lines: int = 0
    records: int = 0
    """Records that were understood."""
    unread: int = 0
    """Records and lines that should have been understood and were not."""
    samples: list[str] = msgspec.field(default_factory=list)
    """The beginnings of the first few of them."""
    formats: set[str] = msgspec.field(default_factory=set)
    """Ids of the formats of which something was found."""
    flags: set[str] = msgspec.field(default_factory=set)
    """Settings that must have been on, as a user would write them: `TORCH_LOGS=+dynamo`."""
    build: str = ""
    """What is known of the build that wrote it: `debug`, `release`, a version."""
    cut_head: bool = False
    cut_tail: bool = False
    interleaved: Literal["", "tagged", "ambiguous"] = ""
    """Several processes in one stream, which tags tell apart or nothing does."""
    cut_lines: int = 0
    """Lines so long that only their beginning was read."""
    command: str = ""
    """The command that the log itself shows to have started the program."""
    problems: list[str] = msgspec.field(default_factory=list)
    """Plain sentences: what of this source could not be read at all, and why."""

    def lose(self, line: bytes, count: int = 1) -> None:
        """Count what could not be read."""
        self.unread += count
        if len(self.samples) < _MOST_SAMPLES:
            self.samples.append(line[:_LONGEST_SAMPLE].decode("utf-8", "backslashreplace"))


class LogSource(msgspec.Struct):
    """One log: a file, or what came through a pipe."""

    name: str
    """Its path, or `-`."""
    modified_ns: int
    """When it was last written: log lines carry no year."""
    rank: int | None = None
    """The rank that its name tells."""
    in_parts: bool = False
    """A structured format takes lines of it away: what is left no longer counts as the file's."""
    tally: ReadTally = msgspec.field(default_factory=ReadTally)


class Writer(Protocol):
    """The run that is being made of logs. Events of one process come in their order."""

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
        """Append it and give its id. The first event of a (rank, pid) begins that process."""
        ...

    def artifact(self, text: str | bytes, kind: str) -> str:
        """Keep a text once, however often it comes; its name goes into an event's body.

        Bytes are taken as UTF-8; what is none is replaced.
        """
        ...

    def started(
        self, *, pid: int = 0, rank: int = 0, torch: str = "", device: str = "", python: str = ""
    ) -> None:
        """What the log tells of a process; the last word on each counts."""
        ...

    def cut(self, *, pid: int = 0, rank: int = 0) -> None:
        """The log of this process breaks off: it gets no end mark."""
        ...

    def sources(self, frames: Iterable[Frame]) -> None:
        """Keep the files of these frames that lie here with the very lines the log shows."""
        ...


class Reader(Protocol):
    """The state of reading one source."""

    def feed(self, block: bytes) -> bytes:
        """Take whole lines, in order; give back those that are not of this format, as they are.

        Lines end with a newline, except perhaps the last of the source. None is longer than
        `opening.LONGEST_LINE`.
        """
        ...

    def finish(self) -> bytes:
        """The source has ended: write what is still open; give back what is not of this format."""
        ...


class Format(msgspec.Struct, frozen=True):
    """One log format.

    Structured formats read first, alone; text formats share the engine of `logs.text`, and what
    their `reader` gives is what that engine asks for (`logs.text.engine.TextReader`).
    """

    id: str
    reader: Callable[[Writer, LogSource], Any]
    """A fresh reader for one source: a `Reader` for structured formats."""
    begins: Callable[[bytes], bool] | None = None
    """Of a structured format: is there anything of it in these bytes, the beginning of a source?
    A text format has none: its lines may stand anywhere."""
