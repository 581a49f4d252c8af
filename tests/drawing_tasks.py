"""What workers do in tests: a module that loads fast, since each new worker loads it."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

from compilescope.base.errors import ToolError


def tally(folder: Path, log: str) -> int:
    """How often it was really called."""
    with open(log, "a") as file:
        file.write("x")
    return len(Path(log).read_text())


def pid_of(number: int) -> int:
    return os.getpid() + 0 * number


def crash(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dawdle(gate: str, number: int = 0) -> str:
    """Until somebody makes that file."""
    while not os.path.exists(gate):
        time.sleep(0.01)
    return "done"


def refuse(folder: Path) -> None:
    raise ToolError("It is damaged.", hint="Record it again.")


def delete(folder: Path) -> None:
    shutil.rmtree(folder)
    (folder / "events-0.jsonl").read_bytes()


def priority() -> int:
    return os.nice(0)
