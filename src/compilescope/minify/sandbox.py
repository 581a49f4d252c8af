"""Candidates in processes of their own: a crash, a hang or a hunger for memory ends only its own.

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
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from compilescope.errors import ToolError
from compilescope.minify.warm_process import NO_MEMORY, TIMED_OUT
from compilescope.settings import fresh_environment

Status = Literal["done", "failed", "timeout", "memory", "crashed"]
_TAIL = 8_000
_START_S = 300.0
_QUIET = {
    # Pools of threads or processes would be there before the fork, and be lost in it.
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Answer:
    """What became of one task."""

    status: Status
    """`failed`: the function raised. `crashed`: its process died or left without an answer."""
    value: Any = None
    """What the function returned, if it is `done`."""
    error: str = ""
    """The exception's class and words, if it `failed`; how it ended, if it did not answer."""
    signal: int | None = None
    """What killed the process."""
    exit_code: int | None = None
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
    ) -> None:
        """`memory_bytes` is what a task may take beyond what the warm process has. `fork`: None
        forks where it is safe."""
        self.limit_s = limit_s
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

    def run(self, task: str, payload: Any = None, *, limit_s: float | None = None) -> Answer:
        """Call `module:function` with `payload` in a process of its own."""
        limit = self.limit_s if limit_s is None else limit_s
        body = msgspec.json.encode({"task": task, "payload": payload})
        begun = time.monotonic()
        with tempfile.TemporaryFile() as output:
            if self._start():
                raw = self._forked(body, limit, output)
            else:
                raw = self._spawned(body, limit, output)
            size = output.seek(0, os.SEEK_END)
            output.seek(max(0, size - _TAIL))
            printed = output.read().decode(errors="replace")
        return _answer(raw, printed, time.monotonic() - begun, limit)

    def close(self) -> None:
        with self._lock:
            if self._control is not None:
                self._control.close()  # The warm process kills its children, and ends.
                self._control = None
            if self._process is not None:
                try:
                    self._process.wait(5)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
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
        ours.settimeout(_START_S)
        said = ours.recv(1)
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
            parts = []
            try:
                while part := ours.recv(1 << 16):
                    parts.append(part)
            except OSError:
                pass
        return b"".join(parts)

    def _spawned(self, body: bytes, limit_s: float, output: Any) -> bytes:
        """A new interpreter: the imports are not on the task's time."""
        command = [*_COMMAND, "once", str(limit_s), str(self.memory_bytes or 0), *self._warm]
        with tempfile.TemporaryDirectory() as folder:
            question, reply = os.path.join(folder, "question"), os.path.join(folder, "reply")
            with open(question, "wb") as file:
                file.write(body)
            try:
                done = subprocess.run(
                    [*command, question, reply],
                    env=self._environment,
                    cwd=self._cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    timeout=limit_s + _START_S,
                    check=False,
                )
                status, late = done.returncode, done.returncode == TIMED_OUT
            except subprocess.TimeoutExpired:
                status, late = -9, True
            said = b""
            if os.path.exists(reply):
                with open(reply, "rb") as file:
                    said = file.read()
        return said + b"\n" + msgspec.json.encode({"exit": status, "timeout": late})


_COMMAND = (sys.executable, "-m", "compilescope.minify.warm_process")


def _answer(raw: bytes, printed: str, seconds: float, limit_s: float) -> Answer:
    """The task's line, if it got so far, and the line on how its process ended."""
    said, _, end = raw.rpartition(b"\n")
    if not end:
        return Answer("crashed", error="its process disappeared", output=printed, seconds=seconds)
    ending = msgspec.json.decode(end)
    code, late = ending["exit"], ending["timeout"]
    signal = -code if code < 0 and not late else None
    common: dict[str, Any] = {"output": printed, "seconds": seconds}
    if late:
        return Answer("timeout", error=f"no result within {limit_s:g} s", **common)
    if said and code == 0:
        reply = msgspec.json.decode(said)
        return Answer(reply["status"], reply.get("value"), reply.get("error", ""), **common)
    # We did not kill it: the system did, for want of memory.
    if signal == 9 or any(sign in printed for sign in NO_MEMORY):
        return Answer("memory", error="it used too much memory", signal=signal, **common)
    how = f"killed by signal {signal}" if signal else f"exited with {code}"
    return Answer("crashed", error=how, signal=signal, exit_code=code, **common)
