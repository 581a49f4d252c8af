"""A program of a sweep, as it travels to the worker that runs it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from compilescope.recorder.target import Target
from compilescope.settings import current_environment
from compilescope.sweep.transformers_classes import CLASS_VARIABLE, PROGRAM

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS")
TASK = "compilescope.sweep.capture:capture"


class SweepProgram(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one job runs."""

    name: str
    kind: Literal["script", "module", "transformers"]
    words: tuple[str, ...]
    """The script or module and its arguments; of `transformers`, the class."""
    folder: str = "."
    """Where it runs, relative to the sweep's base folder."""


class ProgramRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job's payload: a program and what to do with it."""

    program: SweepProgram
    base: str
    """The folder on the driver's machine that programs lie in."""
    shipped: bool = False
    """The base folder was sent to the worker, which has it as its current folder."""
    backend: str = ""
    compile_all: bool = False
    device: str = ""
    threads: int | None = None
    bench: bool = False
    diff: bool = False
    fix: bool = False

    @property
    def here(self) -> Path:
        """The base folder on this machine."""
        return Path(os.getcwd()) if self.shipped else Path(self.base)

    @property
    def folder(self) -> Path:
        return (self.here / self.program.folder).resolve()

    def target(self) -> Target:
        program = self.program
        if program.kind == "transformers":
            # The class's own files are all installed: any folder does, and ours is always there.
            words = (str(PROGRAM), *program.words)
            words += ("--backend", self.backend) if self.backend else ()
            words += ("--device", self.device) if self.device else ()
            return Target("script", words, PROGRAM.parent)
        return Target(program.kind, program.words, self.folder)

    def build_function(self) -> str:
        """`file.py:build`, as `diff` and `bench` take it; empty where the program has none."""
        if self.program.kind == "transformers":
            return f"{PROGRAM}:build"
        if self.program.kind == "module":
            return ""
        script = self.folder / self.program.words[0]
        return f"{script}:build" if _defines_build(script) else ""

    def environment(self) -> dict[str, str]:
        """Beside the worker's own: jobs side by side must not fight for the cores."""
        more: dict[str, str] = {}
        if self.threads is not None:
            given = current_environment()  # What a user set is meant.
            more |= {name: str(self.threads) for name in _THREADS if name not in given}
        if self.device == "cpu":
            more["CUDA_VISIBLE_DEVICES"] = ""
        if self.program.kind == "transformers":
            more[CLASS_VARIABLE] = self.program.words[0]
        return more


def _defines_build(script: Path) -> bool:
    import ast

    try:
        tree = ast.parse(script.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False
    return any(isinstance(node, ast.FunctionDef) and node.name == "build" for node in tree.body)
