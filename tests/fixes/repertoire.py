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
from compilescope.source.refusals import NotMeant, Refused


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
    if isinstance(example, RefusalExample):
        return any(re.search(example.because, each) for each in refusals(fix, found))
    first = meant(fix, found)
    try:
        patch = fix.propose(first) if first is not None else None
    except Refused:
        return False
    return patch is not None and [*patch.files.values()] == [example.good]


def refusals(fix: Fix, found: list[Subject]) -> list[str]:
    """Why the fix refuses what was found; empty where it does not refuse all of it. Their order
    is by cost, which is a matter of time, so the reason that is looked for may be any."""
    reasons = []
    for each in found:
        if fix.rules & each.keys:
            try:
                fix.propose(each)
                return []
            except Refused as refused:
                reasons.append(str(refused))
    return reasons


def meant(fix: Fix, found: list[Subject]) -> Subject | None:
    """What the fix is meant for, of what was found. Their order is by cost, which is a matter of
    time: the first that it does not call somebody else's."""
    keyed = [each for each in found if fix.rules & each.keys]
    return next((each for each in keyed if _is_meant(fix, each)), next(iter(keyed), None))


def _is_meant(fix: Fix, subject: Subject) -> bool:
    try:
        fix.propose(subject)
    except Refused as refused:
        return not isinstance(refused, NotMeant)
    return True


def subjects(folder: Path, text: str) -> list[Subject]:
    return subjects_of(program_of(folder, text))
