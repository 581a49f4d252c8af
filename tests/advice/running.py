"""Runs of programs in forks of one warm process, and what came of each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from compilescope.record.run import Run, read_run

HERE = Path(__file__).parent
_LIMIT_S = 240.0


@dataclass(frozen=True)
class Program:
    """A script of some corpus, with the files beside it."""

    name: str
    corpus: str
    text: str
    script: str = "program.py"
    args: tuple[str, ...] = ()
    beside: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        for name, text in {self.script: self.text, **self.beside}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())


@dataclass(frozen=True)
class Ran:
    """How one run ended."""

    status: int
    timed_out: bool
    stdout: bytes
    stderr: str
    error: str
    """`ValueError: ...`, of the exception that ended it."""
    folder: Path

    @cached_property
    def run(self) -> Run:
        return read_run(Path((self.folder / "run").read_text()), live=False)

    @cached_property
    def values(self) -> dict[str, Any] | None:
        try:
            return dict(json.loads((self.folder / "values.json").read_text()))
        except FileNotFoundError:
            return None


class WarmProcess:
    """Owns the process and a temporary folder; both are gone at the end."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="compilescope-advice-")).resolve()
        self._count = 0
        environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
        environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        # Dynamo keeps the state of CUDA's random numbers, and CUDA does not work after a fork.
        environment["CUDA_VISIBLE_DEVICES"] = ""
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "warm.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", "the warm process did not start"

    def __enter__(self) -> WarmProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=600)
        shutil.rmtree(self._folder, ignore_errors=True)

    def place(self) -> Path:
        """An empty folder."""
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        return folder

    def run(
        self, program: Program, folder: Path, mode: str, functions: Collection[str] = ()
    ) -> Ran:
        """`mode` as `inside.run_program` has it. `functions`: what these return is kept, and not
        what compiled regions give."""
        out = self.place()
        asked = {
            "folder": str(folder),
            "script": program.script,
            "args": program.args,
            "environment": program.environment,
            "mode": mode,
            "functions": sorted(functions),
            "out": str(out),
            "limit_s": _LIMIT_S,
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if (out / "broken").exists():
            raise RuntimeError((out / "broken").read_text())
        return Ran(
            status=answer["status"],
            timed_out=answer["timed_out"],
            stdout=_bytes(out / "stdout"),
            stderr=_bytes(out / "stderr").decode(errors="replace"),
            error=_bytes(out / "error").decode(errors="replace"),
            folder=out,
        )


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
