"""The driver's end of a worker process: asks it one thing at a time, and knows when it is dead."""

from __future__ import annotations

import contextlib
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.child import end_process
from compilescope.base.processes.deadline import clock
from compilescope.base.processes.outcome import kernel_kills, last_line, status_words
from compilescope.base.processes.pause import ledger
from compilescope.base.settings import bench_environment
from compilescope.measure.bench.protocol import Spec, Verb, WorkerReply, WorkerRequest

T = TypeVar("T")

_COMMAND = (sys.executable, "-m", "compilescope.measure.bench.worker")
_PATIENCE_S = 10.0
"""For a process to end by itself. Chosen: it has nothing left to do then; after that it is
killed."""
_DOING: dict[Verb, str] = {
    "survey": "looking up names",
    "prepare": "building the model",
    "first": "compiling",
    "warm": "warming up",
    "run": "measuring",
    "memory": "measuring memory",
    "examine": "examining the graphs and the numbers",
}


class WorkerFailed(Exception):
    """No answer, in a sentence; a hint comes with what a user can act on."""

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint


class WorkerProcess:
    """A process, with a log of its own for what the model prints."""

    def __init__(self, caches: Path, log: Path, limit_s: float) -> None:
        self.limit_s = limit_s
        """For one answer."""
        self._log = log
        self._kills = kernel_kills()
        with log.open("ab") as errors:
            try:
                self._process = subprocess.Popen(
                    (*_COMMAND, str(ledger())),
                    pass_fds=[ledger()],
                    env=bench_environment(caches),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
            except OSError as error:
                raise ToolError(f"Cannot start {sys.executable}: {error.strerror}.") from None
        self._replies: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Whoever waits for a Ctrl-C to take effect does not wait for caches to be written.
        self.end(patience_s=_PATIENCE_S if kind is None else 0.0)

    def ask(self, verb: Verb, answer: type[T], *specs: Spec) -> T:
        self.send(verb, *specs)
        return self.hear(verb, answer)

    def send(self, verb: Verb, *specs: Spec) -> None:
        """Ask, and don't wait: `hear` has the answer."""
        line = msgspec.json.encode(WorkerRequest(verb=verb, specs=specs)) + b"\n"
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # It died; the empty answer says so.
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def hear(self, verb: Verb, answer: type[T]) -> T:
        """What it says; WorkerFailed where it says an error, dies, or says nothing."""
        said = self._reply()
        if said is None:
            self.end(patience_s=0.0)
            raise WorkerFailed(
                f"No answer for {self.limit_s:g} s while {_DOING[verb]} (see --timeout)."
            )
        if not said:
            raise WorkerFailed(self._death(verb))
        reply = msgspec.json.decode(said, type=WorkerReply)
        if reply.error:
            raise WorkerFailed(reply.error, reply.hint)
        return msgspec.json.decode(reply.value, type=answer)

    def end(self, *, patience_s: float = _PATIENCE_S) -> None:
        """Also of what it started; a second time it does nothing."""
        process = self._process
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        end_process(process, patience_s)

    def _reply(self) -> bytes | None:
        """None where there is none within the limit, on which no time counts in which we were
        stopped; empty where the process has closed its end."""
        until = clock() + self.limit_s
        while True:
            try:
                return self._replies.get(timeout=max(until - clock(), 0.0))
            except queue.Empty:
                if clock() >= until:
                    return None

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._replies.put(line)
        self._replies.put(b"")

    def _death(self, verb: Verb) -> str:
        """Its process ended, or at least closed its end of the pipe."""
        self.end(patience_s=1.0)
        status = self._process.returncode
        kills = kernel_kills()
        if status == -signal.SIGKILL and kills is not None and kills != self._kills:
            words = "The system killed the process, out of memory,"
        else:
            how = status_words(status).rstrip(".")
            words = f"The process died ({how[:1].lower()}{how[1:]})"
        said = self._last_words()
        return f"{words} while {_DOING[verb]}{f': {said}' if said else '.'}"

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            return last_line(self._log.read_bytes()[-4096:].decode(errors="replace"))[:200]
        return ""
