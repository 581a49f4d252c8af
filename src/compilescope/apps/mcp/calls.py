"""Runs a command of ours for a tool: as a process of its own, with progress and cancellation.

Nothing of it outlives the server, and nothing of it gets at the protocol's stdout.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.mcpserver import Context

from compilescope.base.errors import ToolError
from compilescope.base.folders import Folders
from compilescope.base.processes.child import Stopping, run_process
from compilescope.base.processes.outcome import ProcessEnd
from compilescope.base.settings import job_environment
from compilescope.base.texts import one_line, visible

GRACE_S = 10.0
"""Between two steps of a cancelled call: Ctrl-C, `kill`, `kill -9`. Chosen as for the dashboard's
jobs: time to write down what was found."""
EVERY_S = 10.0
"""The longest pause between two notifications of progress. Chosen: clients give up a call that is
silent for a minute."""
_VIEWS = 4
"""Commands at once that only read. Chosen: each takes a core for less than a second."""
_TAIL_BYTES = 1 << 14
"""Kept of what a command says beside its answer. Chosen: the last screens of a program."""
_MOST_LINES = 1000
"""Lines of progress that wait for a slow client; of more, some are not told."""
_ERROR = re.compile(r"^compilescope: error: (.+(?:\n  .+)*)", re.MULTILINE)
_SAID = re.compile(r"^compilescope: (?!error:)(.+)$")


@dataclass(frozen=True)
class EndedCommand:
    """A command that has ended."""

    status: int
    """As subprocess has it: negative for a signal."""
    stdout: bytes
    """Its whole answer; of a program that `run` started, the end of all that it printed."""
    said: str
    """The end of what it said on stderr."""
    reason: str
    """Why it did not end with status 0, in a sentence."""
    runs: tuple[str, ...]
    """Ids of the runs that it made."""

    @property
    def error(self) -> ToolError:
        """What the command said was wrong."""
        found = _ERROR.findall(self.said)
        if found:
            message, *hints = [line.strip() for line in found[-1].splitlines()]
            return ToolError(message, " ".join(hints))
        return ToolError(self.reason or "It gave no answer.")

    def answer(self) -> dict[str, Any]:
        """The JSON object that it printed. Raises `ToolError` where there is none."""
        with contextlib.suppress(ValueError):
            value = json.loads(self.stdout)
            if isinstance(value, dict):
                return value
        raise self.error


@dataclass
class ToolCalls:
    """Starts commands, and ends those that run when the server ends."""

    home: Path
    """Where runs are stored, absolute."""
    folders: Folders
    around: Mapping[str, str]
    """The environment of the server: that of programs, too."""
    python: str = ""
    """Another Python that runs programs; empty: this one."""
    jobs: int = 2
    """Programs that run at once; others wait."""
    grace_s: float = GRACE_S
    _running: set[Stopping] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._programs = anyio.CapacityLimiter(self.jobs)
        self._views = anyio.CapacityLimiter(_VIEWS)

    async def read(self, *words: str) -> EndedCommand:
        """A command that only reads runs."""
        return await self._call(words, self._views, None, cwd=None, limit_s=None, joined=False)

    async def read_both(
        self, one: Sequence[str], other: Sequence[str]
    ) -> tuple[EndedCommand, EndedCommand]:
        """Two of those, side by side."""
        found: list[EndedCommand | ToolError] = []

        async def read() -> None:
            try:
                found.append(await self.read(*other))
            except ToolError as error:
                found.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            try:
                first: EndedCommand | ToolError = await self.read(*one)
            except ToolError as error:
                first = error
        for each in (first, found[0]):
            if isinstance(each, ToolError):
                raise each
        assert isinstance(first, EndedCommand) and isinstance(found[0], EndedCommand)
        return first, found[0]

    async def run(
        self,
        words: Sequence[str],
        context: Context[Any, Any] | None,
        *,
        cwd: Path,
        limit_s: float | None = None,
        joined: bool = False,
        stdin: bytes = b"",
    ) -> EndedCommand:
        """A command that runs a user's program. `joined`: what the program prints is not kept
        whole."""
        name, *rest = words
        python = ["--python", self.python] if self.python else []
        return await self._call(
            [name, *python, *rest],
            self._programs,
            context,
            cwd=cwd,
            limit_s=limit_s,
            joined=joined,
            stdin=stdin,
        )

    def kill(self) -> None:
        """End all of them without any grace."""
        for each in list(self._running):
            each.kill()

    async def _call(
        self,
        words: Sequence[str],
        limiter: anyio.CapacityLimiter,
        context: Context[Any, Any] | None,
        *,
        cwd: Path | None,
        limit_s: float | None,
        joined: bool,
        stdin: bytes = b"",
    ) -> EndedCommand:
        name, *rest = words
        command = [*_tool(), name, "--dir", str(self.home), *rest]
        async with _progress(context, name) as told, _turn(limiter, told, name):
            with (
                tempfile.TemporaryDirectory(prefix="compilescope-mcp-") as work,
                contextlib.closing(Stopping(self.grace_s, limit_s)) as stopping,
            ):
                place = Path(work)
                start = partial(
                    run_process,
                    command,
                    job_environment(place / "runs", self.around),
                    place,
                    stdin=stdin,
                    limit_s=None,
                    tail_bytes=_TAIL_BYTES,
                    cwd=cwd or place,
                    heard=told.hear,
                    apart=not joined,
                    stopping=stopping,
                )
                self._running.add(stopping)
                try:
                    ended = await _in_thread(start, stopping)
                finally:
                    self._running.discard(stopping)
                return _ended(ended, stopping, limit_s, self._made(place / "runs"))

    def _made(self, noted: Path) -> tuple[str, ...]:
        """The runs in our folder: commands also make some for themselves, elsewhere."""
        try:
            lines = noted.read_bytes().splitlines()
        except OSError:
            return ()
        paths = [Path(os.fsdecode(line)) for line in lines]
        return tuple(dict.fromkeys(path.name for path in paths if path.parent == self.home))


def _tool() -> list[str]:
    """The tool itself, by this interpreter: files in a program's folder do not hide its modules."""
    safe = ["-P"] if sys.version_info >= (3, 11) else []
    return [sys.executable, *safe, "-m", "compilescope"]


def _ended(
    ended: ProcessEnd, stopping: Stopping, limit_s: float | None, runs: tuple[str, ...]
) -> EndedCommand:
    reason = ended.reason
    if stopping.by == "time" and limit_s is not None:
        reason = f"Stopped at its time limit of {limit_s:g} s."
    said = visible(ended.stderr.decode("utf-8", "replace"))
    return EndedCommand(ended.status, ended.stdout, said, reason, runs)


async def _in_thread(start: partial[ProcessEnd], stopping: Stopping) -> ProcessEnd:
    """Cancelled, it waits until the command has ended."""
    async with _beside(_stop_when_cancelled, stopping):
        with anyio.CancelScope(shield=True):
            # Who may start is settled already.
            ended = await anyio.to_thread.run_sync(start, limiter=anyio.CapacityLimiter(1))
    return ended


@contextlib.asynccontextmanager
async def _beside(
    do: Callable[..., Coroutine[Any, Any, None]], *given: object
) -> AsyncIterator[None]:
    """As long as the block runs. A `ToolError` of it leaves as such, not as one of a group."""
    failed: ToolError | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(do, *given)
        try:
            yield
        except ToolError as error:
            failed = error
        group.cancel_scope.cancel()
    if failed is not None:
        raise failed


async def _stop_when_cancelled(stopping: Stopping) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        stopping.ask()


class _Listener:
    """Takes what a command says, in a thread, and hands on the lines that are progress."""

    def __init__(self, lines: MemoryObjectSendStream[str]) -> None:
        self._lines = lines
        self._part = b""

    def hear(self, data: bytes) -> None:
        *whole, self._part = (self._part + data).split(b"\n")
        self._part = self._part[-_TAIL_BYTES:]
        for line in whole:
            found = _SAID.match(line.decode("utf-8", "replace"))
            if found:
                anyio.from_thread.run_sync(self.tell, one_line(found[1]))

    def tell(self, line: str) -> None:
        with contextlib.suppress(anyio.WouldBlock, anyio.BrokenResourceError):
            self._lines.send_nowait(line)


@contextlib.asynccontextmanager
async def _turn(limiter: anyio.CapacityLimiter, told: _Listener, name: str) -> AsyncIterator[None]:
    if limiter.available_tokens < 1:
        told.tell(f"{name}: waits until another call has ended")
    async with limiter:
        yield


@contextlib.asynccontextmanager
async def _progress(context: Context[Any, Any] | None, name: str) -> AsyncIterator[_Listener]:
    """Tell the client what the command says, and now and then that it still runs."""
    sender, receiver = anyio.create_memory_object_stream[str](_MOST_LINES)
    with sender, receiver:
        async with _beside(_tell, context, name, receiver):
            yield _Listener(sender)


async def _tell(
    context: Context[Any, Any] | None, name: str, lines: MemoryObjectReceiveStream[str]
) -> None:
    if context is None:
        return
    begun, told, line = time.monotonic(), 0, f"{name}: started"
    while True:
        # Nobody counts the steps of a search before it ends: each notification is one more.
        await context.report_progress(told, message=line)
        told += 1
        with anyio.move_on_after(EVERY_S) as silence:
            line = await lines.receive()
        if silence.cancelled_caught:
            line = f"{name}: under way, {time.monotonic() - begun:.0f} s"


def option(name: str, value: object) -> list[str]:
    """An option in one word: whatever the value is, it stays a value."""
    if value is None or value == "" or value is False:
        return []
    return [f"--{name}"] if value is True else [f"--{name}={value}"]


def options(name: str, values: Iterable[str]) -> list[str]:
    """The same option several times."""
    return [word for value in values for word in option(name, value)]
