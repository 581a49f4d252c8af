"""The driver's end of a worker process: asks it one thing at a time, and knows when it is dead."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from compilescope.base.processes.outcome import status_words
from compilescope.base.processes.worker import Worker
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
        self._worker = Worker(_COMMAND, keeps_time=True, words=log, env=bench_environment(caches))

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
        self._worker.send(msgspec.json.encode(WorkerRequest(verb=verb, specs=specs)))

    def hear(self, verb: Verb, answer: type[T]) -> T:
        """What it says; WorkerFailed where it says an error, dies, or says nothing."""
        said = self._worker.hear(self.limit_s)
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
        self._worker.end(patience_s)

    def _death(self, verb: Verb) -> str:
        """Its process ended, or at least closed its end of the channel."""
        self.end(patience_s=1.0)
        if self._worker.killed_for_memory:
            words = "The system killed the process, out of memory,"
        else:
            how = status_words(self._worker.status).rstrip(".")
            words = f"The process died ({how[:1].lower()}{how[1:]})"
        said = self._worker.last_line[:200]
        return f"{words} while {_DOING[verb]}{f': {said}' if said else '.'}"
