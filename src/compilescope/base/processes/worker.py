"""A process of ours that serves requests: we start it, ask it, know when and why it is dead, and
end it with all that it started.

What it is asked and answers are messages of a `Channel`. A warm process has paid for its imports
and forks itself for each order (`fork.serve_forks`).
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from compilescope.base.errors import ToolError
from compilescope.base.processes.channel import Channel
from compilescope.base.processes.child import end_process, end_session
from compilescope.base.processes.deadline import clock
from compilescope.base.processes.outcome import (
    CHUNK,
    kernel_kills,
    last_line,
    ran_out,
    reason_of,
)
from compilescope.base.processes.pause import ledger


class Worker:
    """Our end. Ctrl-C is for us: we decide what becomes of it, and it has a session of its own."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        pair: tuple[Channel, Channel] | None = None,
        keeps_time: bool = False,
        words: Path | None = None,
        **how: Any,
    ) -> None:
        """The last word of the command will be the descriptor for `Channel.given`, unless a `pair`
        of channels was made before. `keeps_time`: the word before that is a descriptor for
        `pause.keep_time_with`. `words`: a file for what it writes; a temporary one where there is
        none, unless `how` has both streams. `how`: for `Popen`, in place of what is usual here."""
        self.channel, theirs = pair or Channel.pair()
        self._words = None if {"stdout", "stderr"} <= how.keys() else _opened(words)
        self._said: bytes | None = None
        self._kills = kernel_kills()
        given = [ledger()] if keeps_time else []
        given.append(theirs.fileno())
        more = () if pair else tuple(map(str, given))
        usual = {"stdin": subprocess.DEVNULL, "stdout": self._words, "stderr": self._words}
        with theirs:
            try:
                self._process: subprocess.Popen[bytes] = subprocess.Popen(
                    [*command, *more],
                    pass_fds=given,
                    start_new_session=True,
                    **{**usual, **how},
                )
            except OSError as error:
                self.channel.close()
                raise ToolError(f"Cannot start {command[0]}: {error.strerror}.") from None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def status(self) -> int:
        """As subprocess has it, after `end`."""
        return int(self._process.returncode)

    @property
    def said(self) -> bytes:
        """The end of what it wrote, after `end`."""
        return self._said or b""

    @property
    def last_line(self) -> str:
        """Likewise; most programs say there why they end."""
        return last_line(self.said.decode(errors="replace"))

    @property
    def killed_for_memory(self) -> bool:
        """Has the system ended it since it was asked last? After `end`."""
        return self.status == -signal.SIGKILL and kernel_kills() != self._kills

    @property
    def reason(self) -> str:
        """Why it did not end with status 0, in a sentence. After `end`."""
        exhausted = ran_out(self.status, "", self.said, self._kills)
        return reason_of(self.status, "", self.said, None, None, exhausted)

    def send(self, message: bytes) -> None:
        """Ask, and don't wait: `hear` has the answer."""
        self._kills = kernel_kills()
        with contextlib.suppress(OSError):  # It died; the empty answer says so.
            self.channel.send(message)

    def hear(self, limit_s: float = math.inf) -> bytes | None:
        """None where it says nothing within the limit; empty where it has closed its end."""
        return self.channel.receive(limit_s)

    def wait(self, seconds: float) -> int | None:
        """Its status; None where it has not ended by then."""
        until = clock() + seconds
        while (left := until - clock()) > 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(left)
        return self._process.poll()

    def stop(self) -> None:
        """Ask it to leave, and don't wait: `end` does."""
        self.channel.close()
        if self.is_running:
            self._process.terminate()

    def kill(self) -> None:
        """From any thread: whoever waits for an answer gets none."""
        self._process.kill()

    def end(self, patience_s: float = 0.0) -> None:
        """Let it leave by itself for so long; then nothing of it goes on. A second time it does
        nothing."""
        if self._said is None:
            self.channel.close()
            end_process(self._process, patience_s)
            self._said = _end_of(self._words)


def _opened(words: Path | None) -> IO[bytes]:
    """As long as the worker lives."""
    return tempfile.TemporaryFile() if words is None else words.open("a+b")


def _end_of(words: IO[bytes] | None) -> bytes:
    if words is None:
        return b""
    with words:
        size = os.fstat(words.fileno()).st_size
        return os.pread(words.fileno(), CHUNK, max(0, size - CHUNK))


_FORK_S = 300.0
"""For a fork. Chosen: minutes more than a slow machine needs."""
_LOOK_S = 0.5
"""Between two looks at a child that may be ended early. Chosen: little beside a run that is worth
ending, and hardly any work where there is nothing new."""


class WarmWorker(Worker):
    """Our end of a process that forks itself. Several threads may have it do something at once."""

    def __init__(self, command: Sequence[str], **how: Any) -> None:
        super().__init__(command, **how)
        self._lock = threading.Lock()

    def run(
        self,
        order: bytes,
        limit_s: float,
        *,
        started: Callable[[int], None] | None = None,
        enough: Callable[[], bool] | None = None,
    ) -> tuple[int, bool] | None:
        """Have a child do this, to its end or its limit: its status, and whether it took too long.
        None where the warm process is lost. `enough` is asked now and then, and ends the child."""
        line, theirs = Channel.pair()
        with line:
            with theirs, self._lock:
                try:
                    self.channel.send(order, [theirs.fileno()])
                except OSError:
                    return None
            told = line.receive(_FORK_S)
            if not told:
                return None
            pid, until, said = int(told), clock() + limit_s, None
            try:
                if started is not None:
                    started(pid)
                said = _heard(line, until, enough)
                late = said is None and clock() >= until
            finally:
                if not said:  # Also at Ctrl-C; after its end, the other side ends what it left.
                    end_session(pid, running=True)
                if said is None:
                    said = line.receive(_FORK_S)
        return (int(said), late) if said else None


def _heard(line: Channel, until: float, enough: Callable[[], bool] | None) -> bytes | None:
    """None where the child has not ended in time, or that was enough."""
    if enough is None:
        return line.receive(until - clock())
    while (left := until - clock()) > 0:
        said = line.receive(min(left, _LOOK_S))
        if said is not None or enough():
            return said
    return None
