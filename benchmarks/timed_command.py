"""A command that is watched: what it prints on stderr and when, by the clock and by the CPU time of
all its processes.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_EVERY_S = 0.5
"""Between two looks at what all processes have used. Chosen: what an ended process used since the
last one is in its parent's figure."""


@dataclass(frozen=True)
class PrintedLine:
    """One line of stderr."""

    wall: float
    cpu: float
    line: str


@dataclass
class TimedCommand:
    """What came of it."""

    status: int
    stdout: str
    wall: float
    cpu: float
    """Seconds, of all its processes together."""
    lines: list[PrintedLine] = field(default_factory=list)


def run_timed(command: Sequence[str], folder: Path, environment: dict[str, str]) -> TimedCommand:
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    begun = time.monotonic()
    lines: list[PrintedLine] = []
    used = [0.0]

    def listen() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            at = time.monotonic() - begun
            lines.append(PrintedLine(at, _cpu_of(process.pid), line.rstrip()))

    def follow() -> None:
        while process.poll() is None:
            used[0] = max(used[0], _cpu_of(process.pid))
            time.sleep(_EVERY_S)

    threads = [threading.Thread(target=each) for each in (listen, follow)]
    for thread in threads:
        thread.start()
    assert process.stdout is not None
    text = process.stdout.read()
    status = process.wait()
    for thread in threads:
        thread.join()
    return TimedCommand(status, text, time.monotonic() - begun, used[0], lines)


def own_environment(scratch: Path) -> dict[str, str]:
    """Nothing is in a cache, no run is kept elsewhere, and lines have no colours."""
    environment = {**os.environ, "NO_COLOR": "1"}
    environment.pop("COMPILESCOPE_DIR", None)
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(scratch / "cache")
    return environment


def first_verified(lines: Sequence[PrintedLine]) -> PrintedLine | None:
    """Where `fix` told the first fix that it had verified."""
    return next((each for each in lines if ": verified" in each.line), None)


def _cpu_of(pid: int) -> float:
    """Of the process and all that it started, ended ones too."""
    total = 0.0
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.Error:
        return 0.0
    for each in family:
        try:
            times = each.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
