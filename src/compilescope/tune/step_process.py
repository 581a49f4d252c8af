"""Our end of a program that runs in turns: starts it, hears it, measures its turns once it has
settled, and knows when it has ended."""

from __future__ import annotations

import contextlib
import json
import math
import queue
import socket
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from compilescope.errors import ToolError
from compilescope.processes.child import end_process
from compilescope.processes.deadline import OutOfTime, clock
from compilescope.processes.outcome import kernel_kills, ran_out, reason_of
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.workbench import Workbench

Mode = Literal["count", "exact", "turns"]
_TASK = "compilescope.tune.child.stepper:begin"
_LAST_S = 10.0
"""For a process to leave after its last word. Chosen: as `bench` gives its workers."""


def compiler_caches(folder: Path) -> dict[str, str]:
    """Variables with which Inductor and Triton keep what they compile in this folder."""
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(folder),
        "TRITON_CACHE_DIR": str(folder / "triton"),
    }


class StepFailed(Exception):
    """A version ended before it had told what it was asked, in a sentence."""


class NotReady(Exception):
    """A version has not told within the time that it was given."""


class StepProcess:
    """A version of the program, in a process that waits at its steps."""

    def __init__(
        self,
        bench: Workbench,
        version: Version,
        mode: Mode,
        caches: Path,
        *,
        eager_random: bool = False,
        **given: Any,
    ) -> None:
        self._bench = bench
        ours, theirs = socket.socketpair()
        self._kills = kernel_kills()
        with theirs:
            task = {
                "channel": theirs.fileno(),
                "mode": mode,
                "folder": str(caches),
                **given,
            }
            asked = {"task": {"name": _TASK, "given": task}, "eager_random": eager_random}
            launch = bench.launch(version, asked, compiler_caches(caches))
            self._stderr = launch.folder / "stderr"
            with (
                open(launch.folder / "stdin", "rb") as stdin,
                open(launch.folder / "stdout", "wb") as stdout,
                open(self._stderr, "wb") as stderr,
            ):
                try:
                    self._process = subprocess.Popen(
                        launch.command,
                        env=launch.environment,
                        stdin=stdin,
                        stdout=stdout,
                        stderr=stderr,
                        pass_fds=[theirs.fileno()],
                        start_new_session=True,
                    )
                except OSError as error:
                    raise ToolError(
                        f"Cannot start {launch.command[0]}: {error.strerror}."
                    ) from None
        self._channel = ours
        self._news: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> StepProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._channel.close()
        end_process(self._process)

    def ask(self, steps: int) -> None:
        with contextlib.suppress(OSError):
            self._channel.sendall(json.dumps({"steps": steps}).encode() + b"\n")

    def hear(self, *kinds: str, until: float = math.inf) -> dict[str, Any] | None:
        """What it says of one of these kinds; None where the program has come to its end. Raises
        `StepFailed` where it fails or is over its limit, `OutOfTime` where the command is, and
        `NotReady` at `until`, by `clock`."""
        limit_s = self._bench.deadline.limit(self._bench.limit_s)
        end = clock() + limit_s
        while True:
            left = min(end, until) - clock()
            if left <= 0 and self._news.empty():
                self.close()
                if until < end:
                    raise NotReady
                if limit_s < self._bench.limit_s:
                    raise OutOfTime
                raise StepFailed(f"it did not come so far within {limit_s:g} s (see --limit)")
            try:
                said = self._news.get(timeout=max(left, 0.0))
            except queue.Empty:
                continue
            if said is None:
                self._failed()
            elif said["kind"] in kinds:
                return said
            elif said["kind"] == "ended":
                with contextlib.suppress(subprocess.TimeoutExpired):
                    if self._process.wait(_LAST_S):
                        self._failed()
                return None

    def _failed(self) -> None:
        """It has closed its end without a word."""
        end_process(self._process, _LAST_S)
        err = self._stderr.read_bytes()[-(1 << 16) :]
        status = self._process.returncode
        exhausted = ran_out(status, "", err, self._kills)
        reason = reason_of(status, "", err, None, None, exhausted)
        raise StepFailed(reason.rstrip(".") or "it ended without a step")

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._channel.makefile("rb") as lines:
            for line in lines:
                self._news.put(json.loads(line))
        self._news.put(None)


@dataclass
class SettledVersion:
    """One process of a version: what it took to settle, and what it has measured since."""

    process: StepProcess
    steady_ms: float
    compile_s: float
    memory_bytes: int | None = None
    steps: int = 0
    """That its turns have taken."""
    over: bool = False
    """The program has come to its end: no more turns."""

    def take_turn(self, steps: int) -> float | None:
        """Milliseconds a step; None where the program ended in it."""
        self.process.ask(steps)
        self.steps += steps
        said = self.process.hear("turn")
        if said is None:
            self.over = True
            return None
        self.memory_bytes = int(said["memory"])
        return float(said["ms"])


def settle(process: StepProcess, until: float = math.inf) -> SettledVersion:
    """Raises `StepFailed` where it never gets there, `NotReady` where not by then."""
    said = process.hear("ready", until=until)
    if said is None:
        raise StepFailed("the program ended before its steps were steady")
    return SettledVersion(process, float(said["steady_ms"]), float(said["compile_s"]))
