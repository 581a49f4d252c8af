"""Runs each candidate in a process of its own: a crash, a hang or too much memory ends only that.

One warm process has paid for its imports and forks itself for each candidate; where it cannot fork
safely, each candidate gets a new interpreter. A task is a function of JSON to JSON, by its name.

with Sandbox(limit_s=60, memory_bytes=4 << 30, warm=("torch",)) as sandbox:
    answer = sandbox.run("package.module:function", {"any": "json"})
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import Deadline, OutOfTime, clock
from compilescope.base.processes.worker import WarmWorker, Worker
from compilescope.base.settings import fresh_environment
from compilescope.change.minify.warm_process import ANSWER, FORKS, NO_MEMORY, OUTPUT

Status = Literal["done", "failed", "timeout", "memory", "crashed"]
_TAIL = 8_000
"""Bytes of what a task printed. Chosen: the end of it, where an error stands."""
_LAST_S = 10.0
"""For a process to leave that has said that it will. Chosen: it has nothing left to do."""
_START_S = 300.0
"""For importing torch and what is preloaded. Chosen: it only ends what hangs, on a busy machine or
a cold disk too."""
_QUIET = {
    # Pools of threads or processes would be there before the fork, and be lost in it.
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class TaskResult:
    """What became of one task."""

    status: Status
    """`failed`: the function raised. `crashed`: its process died or left without an answer."""
    value: Any = None
    """What the function returned, if it is `done`."""
    error: str = ""
    """The exception's class and words, if it `failed`; how it ended, if it did not answer."""
    signal: int | None = None
    """What killed the process."""
    output: str = ""
    """The end of what it printed."""
    seconds: float = 0.0

    @property
    def is_done(self) -> bool:
        return self.status == "done"


class Sandbox:
    """Runs tasks, also from several threads at once."""

    def __init__(
        self,
        limit_s: float = 60.0,
        memory_bytes: int | None = None,
        *,
        warm: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        cwd: str | None = None,
        fork: bool | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        """`memory_bytes` is what a task may take beyond what the warm process has. `fork`: None
        forks where it is safe. What runs into the `deadline` raises `OutOfTime`."""
        self.limit_s = limit_s
        self.deadline = deadline or Deadline()
        self.start_s = 0.0
        """What the warm process took to import everything."""
        self.memory_bytes = memory_bytes
        self._warm = tuple(warm)
        environment = {**fresh_environment(), **_QUIET, **(environment or {})}
        self._how: dict[str, Any] = {"env": environment, "cwd": cwd}
        self._may_fork = hasattr(os, "fork") and hasattr(socket, "send_fds") and fork is not False
        self._worker: WarmWorker | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, task: str, payload: Any = None, *, limit_s: float | None = None) -> TaskResult:
        """Call `module:function` with `payload` in a process of its own."""
        own = self.limit_s if limit_s is None else limit_s
        begun = clock()
        with tempfile.TemporaryDirectory() as folder:
            asked = {"task": task, "payload": payload, "memory": self.memory_bytes}
            order = msgspec.json.encode(asked | {"folder": folder})
            worker = self._start()
            limit = self.deadline.limit(own)
            if worker is not None:
                ended = worker.run(order, limit)
            else:
                ended = self._spawned(order, limit, Path(folder, OUTPUT))
            printed = _tail(Path(folder, OUTPUT))
            answer = _answer(ended, Path(folder, ANSWER), printed, clock() - begun, limit)
        if answer.status == "timeout" and self.deadline.is_over:
            raise OutOfTime  # It says nothing about the task, so nobody may remember it.
        return answer

    def close(self) -> None:
        with self._lock:
            if self._worker is not None:
                # Not asked to leave: while it imports torch it would not hear that for seconds.
                self._worker.end()
                self._worker = None

    def _start(self) -> WarmWorker | None:
        """The warm process, started by the first task; None where it could not fork."""
        with self._lock:
            if self._worker is not None and not self._worker.is_running:
                self._worker.end()  # Something killed it: start another one.
                self._worker = None
            if self._worker is None and self._may_fork:
                self._may_fork = self._start_warm()
            return self._worker

    def _start_warm(self) -> bool:
        limit_s, begun = self.deadline.limit(_START_S), clock()
        self._worker = worker = WarmWorker([*_COMMAND, "serve", *self._warm], **self._how)
        said = worker.hear(limit_s)
        self.start_s = clock() - begun
        if said == FORKS:
            return True
        worker.end(_LAST_S if said is not None else 0.0)
        self._worker = None
        if said is None:
            raise OutOfTime
        if not said:
            raise ToolError(
                f"The process for candidates could not start: {worker.last_line or 'no message'}."
            )
        return False

    def _spawned(self, order: bytes, limit_s: float, output: Path) -> tuple[int, bool]:
        """A new interpreter: the imports are not on the task's time."""
        with Worker([*_COMMAND, "once", *self._warm], words=output, **self._how) as worker:
            ready = worker.hear(self.deadline.limit(_START_S))
            worker.send(order)
            late = ready is None or worker.wait(limit_s) is None
        return worker.status, late


_COMMAND = (sys.executable, "-m", "compilescope.change.minify.warm_process")


def _tail(output: Path) -> str:
    """Nothing where the process was ended before it had opened the file."""
    with suppress(FileNotFoundError), output.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        return file.read().decode(errors="replace")
    return ""


def _answer(
    ended: tuple[int, bool] | None, said: Path, printed: str, seconds: float, limit_s: float
) -> TaskResult:
    """What the task said, if it got so far, and how its process ended."""
    common: dict[str, Any] = {"output": printed, "seconds": seconds}
    if ended is None:
        return TaskResult("crashed", error="its process disappeared", **common)
    status, late = ended
    if late:
        return TaskResult("timeout", error=f"no result within {limit_s:g} s", **common)
    if status == 0 and said.exists():
        reply = msgspec.json.decode(said.read_bytes())
        return TaskResult(reply["status"], reply.get("value"), reply.get("error", ""), **common)
    signal = -status if status < 0 else None
    if any(sign in printed for sign in NO_MEMORY):
        return TaskResult("memory", error="it used too much memory", signal=signal, **common)
    if signal == 9:  # We did not kill it: mostly it was the system, for want of memory.
        killed = "it was killed by SIGKILL, as the system does where memory runs out"
        return TaskResult("memory", error=killed, signal=signal, **common)
    how = f"killed by signal {signal}" if signal else f"exited with {status}"
    return TaskResult("crashed", error=how, signal=signal, **common)
