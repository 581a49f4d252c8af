"""What the readers of one console log share: its processes, its times and its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compilescope.logs.format import LogSource, Writer
from compilescope.logs.text.clock import LogClock
from compilescope.logs.text.lines import Tag
from compilescope.model.bodies import Body, GraphCompiled
from compilescope.model.stack import Frame

_MOST_PROCESSES = 4096
"""Chosen: a bound for memory, for logs with made-up ids."""


@dataclass
class Announced:
    """A graph that torch_xla is about to compile: a device's compiler may tell more of it."""

    body: GraphCompiled
    stack: tuple[Frame, ...]
    time_ns: int


@dataclass
class ConsoleProcess:
    """One process whose lines are in the log."""

    rank: int = 0
    pid: int = 0
    now_ns: int = 0
    """The last time that was seen."""
    handed: str | None = None
    """The last compile id for which Dynamo called a backend."""
    backend: str | None = None
    announced: Announced | None = None
    unstamped: bool = False
    """Something of it stood in lines that name no process."""


class Console:
    """One log, as all text formats see it."""

    def __init__(self, writer: Writer, source: LogSource) -> None:
        self.writer = writer
        self.source = source
        self.tally = source.tally
        self.clock = LogClock(source.modified_ns)
        self.first_ns = 0
        """The first time that the log tells: what comes before it was not later."""
        self._block = b""
        self._block_at = 0
        self._lines_before = 0
        self._processes: dict[tuple[bytes, int], ConsoleProcess] = {}
        self._latest: dict[bytes, ConsoleProcess] = {}

    def begin(self, block: bytes) -> None:
        """What is read next, as it is in the file."""
        self._lines_before += self._block.count(b"\n")
        self._block, self._block_at = block, 0

    def line_number(self, text: bytes) -> int:
        """Of the line in the file that holds this text, from 1; asked for in the log's order.
        0 where it is not known: colors may run through it, or lines were taken away before."""
        found = -1 if self.source.in_parts else self._block.find(text, self._block_at)
        if found < 0:
            return 0
        self._block_at = found + len(text)
        return self._lines_before + self._block.count(b"\n", 0, found) + 1

    def process_of(self, tag: Tag, pid: int) -> ConsoleProcess:
        """The process that wrote a line which names its process id."""
        found = self._processes.get((tag.text, pid))
        if found is None:
            found = self._begun(tag, pid)
        elif tag.rank is not None and found.rank != tag.rank:
            found.rank = tag.rank
        self._latest[tag.text] = found
        return found

    def process_behind(self, tag: Tag) -> ConsoleProcess:
        """The process that a line without a process id belongs to: the last that was heard of."""
        found = self._latest.get(tag.text)
        if found is None and tag.rank is not None:
            same = (p for p in self._processes.values() if p.rank == tag.rank and p.pid)
            found = next(same, None)
        if found is None:
            found = self._latest[tag.text] = self._begun(tag, tag.pid or 0)
        return found

    def _begun(self, tag: Tag, pid: int) -> ConsoleProcess:
        nameless = self._processes.pop((tag.text, 0), None) if pid else None
        if nameless is not None and not nameless.now_ns:
            nameless = None
        rank = tag.rank if tag.rank is not None else self.source.rank or 0
        process = ConsoleProcess(rank, pid, nameless.now_ns if nameless else 0)
        if len(self._processes) < _MOST_PROCESSES:
            self._processes[tag.text, pid] = process
        return process

    def processes(self) -> list[ConsoleProcess]:
        """Those that were heard of, by a process id or a tag."""
        return [p for (tag, pid), p in self._processes.items() if tag or pid or p.unstamped]

    @property
    def crowded(self) -> bool:
        """Did lines that name no process stand among those of several, with no tag on them?"""
        untagged = [p for (tag, _), p in self._processes.items() if not tag and p.pid]
        ranks = {p.rank for p in untagged}
        if len(untagged) < 2:
            return False
        return any(p.unstamped for p in untagged) or (len(ranks) > 1 and self._nameless)

    @property
    def _nameless(self) -> bool:
        nobody = self._processes.get((b"", 0))
        return nobody is not None and nobody.unstamped

    def event(
        self,
        process: ConsoleProcess,
        body: Body,
        *,
        stack: Sequence[Frame] = (),
        compile_id: str | None = None,
        time_ns: int | None = None,
        epoch: int = 0,
    ) -> str:
        if not process.now_ns:
            process.now_ns = self.first_ns or self.source.modified_ns
        when = time_ns or process.now_ns
        self.writer.sources(stack)
        return self.writer.event(
            body,
            time_ns=when,
            pid=process.pid,
            rank=process.rank,
            compile_id=compile_id,
            stack=stack,
            epoch=epoch,
        )

    def announce(self, process: ConsoleProcess, announced: Announced) -> None:
        """torch_xla says that it compiles a graph, and why."""
        self.settle(process)
        process.announced = announced
        process.unstamped = True

    def settle(self, process: ConsoleProcess) -> None:
        """Nothing more will be told of the graph that was announced."""
        announced, process.announced = process.announced, None
        if announced is not None:
            self.event(
                process, announced.body, stack=announced.stack, time_ns=announced.time_ns or None
            )
