"""Runs each candidate in a process of its own: a crash, a hang or too much memory ends only that.

One warm process has paid for its imports and forks itself for each candidate; where it cannot fork
safely, each candidate gets a new interpreter. A task is a function of JSON to JSON, by its name.

with Sandbox(limit_s=60, memory_bytes=4 << 30, warm=("torch",)) as sandbox:
    answer = sandbox.run("package.module:function", {"any": "json"})
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.child import end_process, run_within
from compilescope.base.processes.deadline import Deadline, OutOfTime, clock, pauses
from compilescope.base.settings import fresh_environment
from compilescope.change.minify.warm_process import NO_MEMORY, TIMED_OUT

Status = Literal["done", "failed", "timeout", "memory", "crashed"]
_TAIL = 8_000
"""Bytes of what a task printed. Chosen: the end of it, where an error stands."""
_LAST_LINE = 200
"""Bytes. Chosen: several times the line on how a process ended, which comes last."""
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
        self._environment = {**fresh_environment(), **_QUIET, **(environment or {})}
        self._cwd = cwd
        self._may_fork = hasattr(os, "fork") and hasattr(socket, "send_fds") and fork is not False
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, task: str, payload: Any = None, *, limit_s: float | None = None) -> TaskResult:
        """Call `module:function` with `payload` in a process of its own."""
        while True:
            stopped = pauses()
            answer = self._run(task, payload, limit_s)
            # Its time is kept in another process, which does not know that it was stopped.
            if pauses() == stopped or answer.status not in ("timeout", "crashed"):
                return answer

    def _run(self, task: str, payload: Any, limit_s: float | None) -> TaskResult:
        own = self.limit_s if limit_s is None else limit_s
        body = msgspec.json.encode({"task": task, "payload": payload})
        begun = clock()
        with tempfile.TemporaryFile() as output:
            ready = self._start()
            limit = self.deadline.limit(own)
            if ready:
                raw = self._forked(body, limit, output)
            else:
                raw = self._spawned(body, limit, output)
            size = output.seek(0, os.SEEK_END)
            output.seek(max(0, size - _TAIL))
            printed = output.read().decode(errors="replace")
        answer = _answer(raw, printed, clock() - begun, limit)
        if answer.status == "timeout" and self.deadline.is_over:
            raise OutOfTime  # It says nothing about the task, so nobody may remember it.
        return answer

    def close(self) -> None:
        with self._lock:
            if self._control is not None:
                self._control.close()
                self._control = None
            if self._process is not None:
                # Not asked to leave: while it imports torch it would not hear that for seconds.
                end_process(self._process)
                if self._process.stderr is not None:
                    self._process.stderr.close()
                self._process = None

    def _start(self) -> bool:
        """Is there a warm process to fork? It is started by the first task."""
        with self._lock:
            if self._control is not None and self._process and self._process.poll() is not None:
                self._control.close()  # Something killed it: start another one.
                self._control = None
            if self._control is None and self._may_fork:
                self._may_fork = self._start_warm()
            return self._may_fork

    def _start_warm(self) -> bool:
        limit_s, begun = self.deadline.limit(_START_S), clock()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [*_COMMAND, "serve", str(theirs.fileno()), *self._warm],
                pass_fds=[theirs.fileno()],
                env=self._environment,
                cwd=self._cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                # Ctrl-C is for us: we decide what becomes of a candidate.
                start_new_session=True,
            )
        said = _first_byte(ours, limit_s)
        if said is None:
            self._process.kill()
            ours.close()
            raise OutOfTime
        self.start_s = clock() - begun
        if not said:
            assert self._process.stderr is not None
            words = self._process.stderr.read().decode(errors="replace").strip().splitlines()
            self._process.wait()
            ours.close()
            raise ToolError(
                "The process for candidates could not start: "
                f"{words[-1] if words else 'no message'}."
            )
        ours.settimeout(None)
        if said == b"f":
            self._control = ours
            return True
        ours.close()
        self._process.wait()
        return False

    def _forked(self, body: bytes, limit_s: float, output: Any) -> bytes:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                note = msgspec.json.encode([limit_s, self.memory_bytes])
                with self._lock:
                    if self._control is None:
                        return b""
                    try:
                        socket.send_fds(
                            self._control,
                            [len(note).to_bytes(4, "big") + note],
                            [theirs.fileno(), output.fileno()],
                        )
                    except OSError:
                        return b""
            try:
                ours.sendall(body)
                ours.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # It is dead already; what is left to read says how.
            # The warm process keeps the time; this limit is for the case that it dies.
            ours.settimeout(limit_s + 30)
            said = bytearray()
            try:
                # Not until its end: a daemon that the task left behind may hold the other side.
                while not _is_whole(said) and (part := ours.recv(1 << 16)):
                    said += part
            except OSError:
                pass
        return bytes(said)

    def _spawned(self, body: bytes, limit_s: float, output: Any) -> bytes:
        """A new interpreter: the imports are not on the task's time."""
        command = [*_COMMAND, "once", str(limit_s), str(self.memory_bytes or 0), *self._warm]
        with tempfile.TemporaryDirectory() as folder:
            question, reply = os.path.join(folder, "question"), os.path.join(folder, "reply")
            with open(question, "wb") as file:
                file.write(body)
            try:
                done = run_within(
                    [*command, question, reply],
                    self.deadline.limit(limit_s + _START_S),
                    env=self._environment,
                    cwd=self._cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
                status, late = done.returncode, done.returncode == TIMED_OUT
            except subprocess.TimeoutExpired:
                status, late = -9, True
            said = b""
            if os.path.exists(reply):
                with open(reply, "rb") as file:
                    said = file.read()
        return said + b"\n" + msgspec.json.encode({"exit": status, "timeout": late})


_COMMAND = (sys.executable, "-m", "compilescope.change.minify.warm_process")


def _first_byte(line: socket.socket, limit_s: float) -> bytes | None:
    """None: nothing came in time."""
    until = clock() + limit_s
    while (left := until - clock()) > 0:
        line.settimeout(left)
        with suppress(TimeoutError):
            return line.recv(1)
    return None


def _is_whole(said: bytearray) -> bool:
    """The line on how the process ended comes last; before it there is at most one, without any
    line break in it."""
    return said.endswith(b"}") and b"\n" in said[-_LAST_LINE:]


def _answer(raw: bytes, printed: str, seconds: float, limit_s: float) -> TaskResult:
    """The task's line, if it got so far, and the line on how its process ended."""
    said, _, end = raw.rpartition(b"\n")
    if not end:
        return TaskResult(
            "crashed", error="its process disappeared", output=printed, seconds=seconds
        )
    ending = msgspec.json.decode(end)
    code, late = ending["exit"], ending["timeout"]
    signal = -code if code < 0 and not late else None
    common: dict[str, Any] = {"output": printed, "seconds": seconds}
    if late:
        return TaskResult("timeout", error=f"no result within {limit_s:g} s", **common)
    if said and code == 0:
        reply = msgspec.json.decode(said)
        return TaskResult(reply["status"], reply.get("value"), reply.get("error", ""), **common)
    if any(sign in printed for sign in NO_MEMORY):
        return TaskResult("memory", error="it used too much memory", signal=signal, **common)
    if signal == 9:  # We did not kill it: mostly it was the system, for want of memory.
        killed = "it was killed by SIGKILL, as the system does where memory runs out"
        return TaskResult("memory", error=killed, signal=signal, **common)
    how = f"killed by signal {signal}" if signal else f"exited with {code}"
    return TaskResult("crashed", error=how, signal=signal, **common)
