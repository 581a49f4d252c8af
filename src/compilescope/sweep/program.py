"""A program of a sweep, as it travels to the worker that runs it: a file, or a model class of
transformers.
"""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
from pathlib import Path
from typing import Literal

import msgspec

from compilescope.errors import ToolError
from compilescope.processes.child import run_process
from compilescope.processes.outcome import ProcessEnd, last_words
from compilescope.recorder.target import Target
from compilescope.settings import current_environment

PROGRAM = Path(__file__).parent / "programs" / "transformers_model.py"
CLASS_VARIABLE = "COMPILESCOPE_SWEEP_CLASS"
"""Names the class to the program's `build()`, for `diff` and `bench`."""
UNBUILT_STATUS = 3
"""The program's exit status where a class can't be built or run in eager mode."""
_LIMIT_S = 300.0
"""For importing every class of transformers. Chosen: it ends what hangs."""
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


# The model classes of `transformers`: asked of the program that builds them, in a child process.
#
# The tool itself never imports `transformers` or torch.


class ModelClass(msgspec.Struct, frozen=True):
    """A concrete model class, and the folder of `transformers` it lies in."""

    name: str
    family: str


def find_classes(pattern: str) -> list[ModelClass]:
    """Those that match: `all`, a family, or globs on class names, separated by commas."""
    found = _listed(pattern)
    if not found:
        raise ToolError(f"No model class of transformers matches {pattern!r}.", hint=_hint(pattern))
    return found


def _listed(pattern: str) -> list[ModelClass]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(PROGRAM), "--list", pattern]
        ended = run_process(command, current_environment(), Path(folder), limit_s=_LIMIT_S)
    if ended.status != 0:
        raise _failure(ended)
    # Whatever imports print stands before it.
    lines = ended.stdout.decode(errors="replace").strip().splitlines()
    try:
        return msgspec.json.decode(lines[-1], type=list[ModelClass])
    except (IndexError, msgspec.DecodeError):
        raise ToolError("The model classes of transformers can't be listed: no output.") from None


def _failure(ended: ProcessEnd) -> ToolError:
    if ended.timed_out:
        return ToolError(f"Listing the classes of transformers took over {_LIMIT_S:.0f} s.")
    last = last_words(ended.stderr) or f"exit status {ended.status}"
    if "No module named 'transformers'" in last:
        return ToolError(
            "transformers is not installed.", hint='Run: pip install "compilescope[models]"'
        )
    return ToolError(f"The model classes of transformers can't be listed: {last}")


def _hint(pattern: str) -> str:
    known = _listed("all")
    names = {each.name for each in known} | {each.family for each in known}
    near = difflib.get_close_matches(pattern, names, n=3)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    return "Give all, a family such as bert, or a glob on class names such as '*ForCausalLM'."
