"""A tool under comparison: what it can be asked, and what it answered."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from peers.truths import Program

LIMIT_S = 900
"""For one question. Chosen: a minifier with a C++ compiler on a busy machine takes half of it."""


@dataclass
class Answer:
    """What a user gets to read, and what else a tool leaves."""

    text: str = ""
    cpu_s: float = 0.0
    status: int | None = 0
    """None: stopped at the limit."""
    count: int | None = None
    """Graph breaks, as the tool itself counts or lists them."""
    repro: str = ""
    """A script that should fail as the program does."""
    verdict: str = ""
    """The part of the text that says what computes other numbers; empty where nothing was found."""
    python: list[str] = field(default_factory=list)
    """Source of what Dynamo runs in a function's place, a file each."""


Ask = Callable[[Program, Path], Answer]


@dataclass(frozen=True)
class Tool:
    name: str
    watch: Ask | None = None
    """What does this program lose?"""
    shrink: Ask | None = None
    """The smallest script on which the backend still fails."""
    localise: Ask | None = None
    """Which operation, or which part of the compiler, computes other numbers?"""
    fix: Ask | None = None
    """Change the program, in the folder it is given, so that less is lost."""
    packages: tuple[str, ...] = ()
    unmodified: bool = True
    """Whether it takes the program's file as it is."""
    not_its_job: frozenset[str] = frozenset()
    """Jobs for which its documentation does not offer it, though it is asked the question."""
    own_backends: bool = True
    """Whether it is meant for a backend that the program brings, not only for PyTorch's."""
    not_run: str = ""
    """Why it is not run at all, with the source of what is said of it instead."""

    def missing(self) -> str:
        """The packages to install, empty if there are none."""
        return " ".join(name for name in self.packages if not installed(name))

    def versions(self) -> str:
        return ", ".join(f"{name} {version(name)}" for name in self.packages if installed(name))


def installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def copied(program: Program, folder: Path) -> Path:
    """The program and its helper files in a folder of its own: tools write beside it."""
    caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(program.folder, folder, dirs_exist_ok=True, ignore=caches)
    return folder / program.file.name


def asked(
    command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None
) -> Answer:
    """What a command says, with the CPU time of all its processes."""
    started = time.monotonic()
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        **(variables or {}),
    }
    # A cache of another tool's run would make the next one look cheap.
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor_cache")
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=(folder / "stdout.txt").open("a"),
        stderr=(folder / "stderr.txt").open("a"),
        start_new_session=True,
    )
    status: int | None = None
    used = 0.0
    while time.monotonic() - started < LIMIT_S:
        ended, code, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            status, used = os.waitstatus_to_exitcode(code), usage.ru_utime + usage.ru_stime
            break
        time.sleep(0.05)
    else:
        os.killpg(process.pid, signal.SIGKILL)
        _, _, usage = os.wait4(process.pid, 0)
        used = usage.ru_utime + usage.ru_stime
    process.returncode = -1 if status is None else status
    text = "".join(
        (folder / name).read_text(errors="replace") for name in ("stdout.txt", "stderr.txt")
    )
    return Answer(text, used, status)


def python(*arguments: str | Path) -> list[str | Path]:
    return [sys.executable, *arguments]
