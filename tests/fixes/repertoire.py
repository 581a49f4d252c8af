"""Runs a small program under capture, in this process, and gives its subjects to a fix."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import sys
import warnings
from pathlib import Path

import compilescope
from compilescope.analysis.digest import digest
from compilescope.fixes.fix import Fix
from compilescope.fixes.subject import Program, Subject, subjects_of
from compilescope.source.examples import Example, RefusalExample
from compilescope.source.refusals import Refused


def program_of(folder: Path, text: str, name: str = "program.py") -> Program:
    """The program after one run of it. What it prints and raises is not asked for."""
    import torch

    path = folder / name
    path.write_text(text)
    torch._dynamo.reset()
    before = list(sys.path), dict(os.environ)
    flags = torch._dynamo.config.get_config_copy()
    settings = torch.compiler.config.get_config_copy()
    with (
        compilescope.capture() as seen,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        sys.path.insert(0, str(folder))
        try:
            runpy.run_path(str(path), run_name="__main__")
        except Exception:  # A program may fail, with fullgraph for one.
            pass
        finally:
            sys.path[:] = before[0]
            os.environ.clear()
            os.environ.update(before[1])
            torch._dynamo.config.load_config(flags)
            torch.compiler.config.load_config(settings)
            torch.compiler.set_stance("default")
    torch._dynamo.reset()
    run = seen.run
    return Program(run, digest(run), str(path))


def example_name(fix: Fix, example: Example | RefusalExample) -> str:
    """As a capability: a torch shows it or not."""
    if isinstance(example, RefusalExample):
        return f"example/refusal/{fix.id}/{fix.refusals.index(example)}"
    return f"example/fix/{fix.id}/{fix.examples.index(example)}"


def shown_by(example: Example | RefusalExample) -> str:
    return example.program if isinstance(example, RefusalExample) else example.bad


def holds(fix: Fix, example: Example | RefusalExample, found: list[Subject]) -> bool:
    """Of what was found in its program: the fix answers it, as the example says."""
    first = next((each for each in found if fix.rules & each.keys), None)
    if first is None:
        return False
    try:
        patch = fix.propose(first)
    except Refused as refused:
        wanted = getattr(example, "because", None)
        return wanted is not None and re.search(wanted, str(refused)) is not None
    return isinstance(example, Example) and [*patch.files.values()] == [example.good]


def subjects(folder: Path, text: str) -> list[Subject]:
    return subjects_of(program_of(folder, text))
