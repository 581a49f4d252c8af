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

import msgspec

import compilescope
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.subject import Program, Subject, subjects_of
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.findings.recompiles import count_strictly
from compilescope.knowledge.source.examples import Example, RefusalExample
from compilescope.knowledge.source.refusals import NotMeant, Refused


def program_of(folder: Path, text: str, name: str = "program.py") -> Program:
    """The program after one run of it. What it prints and raises is not asked for."""
    import torch

    path = folder / name
    path.write_text(text)
    torch._dynamo.reset()
    torch.manual_seed(0)
    before = list(sys.path), dict(os.environ), set(sys.modules)
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
            with contextlib.suppress(Exception):  # A program may fail, with fullgraph for one.
                runpy.run_path(str(path), run_name="__main__")
        finally:
            sys.path[:] = before[0]
            os.environ.clear()
            os.environ.update(before[1])
            _forget(folder, set(sys.modules) - before[2])
            torch._dynamo.config.load_config(flags)
            torch.compiler.config.load_config(settings)
            torch.compiler.set_stance("default")
    torch._dynamo.reset()
    run = seen.run
    found = digest(run)
    # Every recompile, also for versions that the program needs: fixes are asked about each.
    found = msgspec.structs.replace(found, recompiles=count_strictly(found.recompiles))
    return Program(run, found, str(path))


def _forget(folder: Path, imported: set[str]) -> None:
    """The program's own modules: the next program may have others of those names."""
    for name in imported:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(folder):
            del sys.modules[name]


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
        patch = fix.propose(first.meant_for(fix.rules)) if first is not None else None
    except Refused:
        return False
    return patch is not None and [*patch.files.values()] == [example.good]


def refusals(fix: Fix, found: list[Subject]) -> list[str]:
    """Why the fix refuses what was found; empty where it does not refuse all of it."""
    reasons = []
    for each in found:
        if fix.rules & each.keys:
            try:
                fix.propose(each.meant_for(fix.rules))
                return []
            except Refused as refused:
                reasons.append(str(refused))
    return reasons


def meant(fix: Fix, found: list[Subject]) -> Subject | None:
    """What the fix is meant for, of what was found: the first that it does not call somebody
    else's."""
    keyed = [each.meant_for(fix.rules) for each in found if fix.rules & each.keys]
    return next((each for each in keyed if _is_meant(fix, each)), next(iter(keyed), None))


def _is_meant(fix: Fix, subject: Subject) -> bool:
    try:
        fix.propose(subject)
    except Refused as refused:
        return not isinstance(refused, NotMeant)
    return True


def subjects(folder: Path, text: str) -> list[Subject]:
    return in_order(program_of(folder, text))


def in_order(program: Program) -> list[Subject]:
    """By their places in the source: by cost, they would change places from run to run."""

    def place(subject: Subject) -> tuple[bool, str, int, int, str]:
        column = subject.finding.column or 0
        return subject.file != program.main, subject.file, subject.line, column, subject.rule

    return sorted(subjects_of(program), key=place)
