"""Runs one program under capture in this process and says which problems it has.

These are tasks of a sandbox: the process is the program's own and ends with it.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from compilescope.base.version import VERSION
from compilescope.change.minify.source.findings import (
    Original,
    SourceFinding,
    TrialRequest,
    TrialResult,
    crash_of,
    findings_of,
)
from compilescope.instrument.recorder.journal import MemoryJournal
from compilescope.instrument.recorder.session import recording
from compilescope.instrument.torchapi.compilation.fresh import compile_nothing
from compilescope.knowledge.analysis.digest import digest
from compilescope.record.header import RunHeader
from compilescope.record.run import Run

_SCRIPT = "program.py"


_KEPT: list[contextlib.ExitStack] = []
"""What is forgotten would be closed."""


def try_program(payload: Any, *, goes_on: bool = False) -> Any:
    """`goes_on`: this process does, so that the hooks must go."""
    trial = msgspec.convert(payload, TrialRequest)
    os.chdir(trial.folder)
    script = Path(trial.folder, _SCRIPT)
    script.write_text(trial.text, encoding="utf-8")
    sys.argv = [str(script)]
    sys.path[:0] = [trial.folder, *trial.paths]
    if not trial.compiled:
        compile_nothing()
    hooks = contextlib.ExitStack()
    answer = _watched(trial.folder, lambda: runpy.run_path(str(script), run_name="__main__"), hooks)
    if goes_on:
        hooks.close()
    return answer


def try_original(payload: Any) -> Any:
    program = msgspec.convert(payload, Original)
    name = program.words[0]
    if not program.compiled:
        compile_nothing()
    if program.kind == "module":
        sys.path.insert(0, "")
        sys.argv = list(program.words)
        return _watched(
            program.root, lambda: runpy.run_module(name, run_name="__main__", alter_sys=True)
        )
    if program.kind == "code":
        sys.path.insert(0, "")
        sys.argv = ["-c", *program.words[1:]]
        return _watched(program.root, lambda: _run_code(name))
    sys.argv = list(program.words)
    sys.path.insert(0, program.root)
    return _watched(program.root, lambda: runpy.run_path(name, run_name="__main__"))


def _run_code(text: str) -> None:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    exec(compile(text, "<string>", "exec", dont_inherit=True), module.__dict__)


def _watched(
    root: str, run: Callable[[], object], hooks: contextlib.ExitStack | None = None
) -> Any:
    # Taking the hooks off takes a tenth of a try, and the process ends anyway.
    hooks = hooks or contextlib.ExitStack()
    _KEPT.append(hooks)
    warnings.simplefilter("ignore")
    journal = MemoryJournal()
    error = message = ""
    uncaught: BaseException | None = None
    hooks.enter_context(recording(journal))
    try:
        run()
    except BaseException as ended:  # The border of a worker: however it ends, it has shown.
        if not (isinstance(ended, SystemExit) and ended.code in (None, 0)):
            uncaught, error, message = ended, type(ended).__name__, str(ended)[:500]
    header = RunHeader(run="trial", tool=VERSION, root=root)
    record = Run(header, journal.events, journal.artifacts)
    seen = digest(record)
    crash: SourceFinding | None = crash_of(uncaught, seen) if uncaught is not None else None
    found = (*filter(None, [crash]), *findings_of(record, seen))
    failed = any(failure.gb_type is None for failure in seen.failures)
    return msgspec.to_builtins(
        TrialResult(found, error, message, seen.graphs, seen.torch or "", failed)
    )
