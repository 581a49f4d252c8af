"""Remedies name only what the torch of the run has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from compilescope.change.fixes.catalogue import all_fixes
from compilescope.change.fixes.subject import Program, Subject
from compilescope.knowledge.source.refusals import NotMeant
from compilescope.record.bodies import ProcessStarted
from compilescope.record.run import Run
from fixes.repertoire import in_order, program_of

pytestmark = [pytest.mark.torch]
FIXES = {fix.id: fix for fix in all_fixes()}


def seen_by(fix: str, folder: Path, *, takes: tuple[str, ...]) -> Subject:
    """What the example of the fix loses, by a torch whose `torch.compile` takes no more."""
    program = program_of(folder, FIXES[fix].examples[0].bad)
    subject = next(each for each in in_order(program) if FIXES[fix].rules & each.keys)
    return replace(subject, program=_with_torch(program, takes))


def _with_torch(program: Program, takes: tuple[str, ...]) -> Program:
    run = program.run
    events = [
        msgspec.structs.replace(
            event, body=msgspec.structs.replace(event.body, compile_arguments=takes)
        )
        if isinstance(event.body, ProcessStarted)
        else event
        for event in run.events
    ]
    return replace(program, run=Run(run.header, events, run.artifacts))


def test_the_limit_is_an_argument_or_a_setting(tmp_path: Path) -> None:
    fix = FIXES["raised-limit"]
    new = seen_by("raised-limit", tmp_path, takes=("dynamic", "recompile_limit"))
    assert fix.propose(new).files[new.file] == fix.examples[0].good
    old = replace(new, program=_with_torch(new.program, ("dynamic",)))
    patch = fix.propose(old)
    assert "torch._dynamo.config.recompile_limit = 64" in patch.files[old.file]
    assert "recompile_limit=64" not in patch.files[old.file]
    assert "every compiled function" in patch.states


def test_nothing_is_isolated_where_torch_cannot(tmp_path: Path) -> None:
    subject = seen_by("isolated-recompiles", tmp_path, takes=("dynamic",))
    with pytest.raises(NotMeant, match="isolate_recompiles"):
        FIXES["isolated-recompiles"].propose(subject)


def test_a_run_knows_what_its_torch_takes(tmp_path: Path) -> None:
    run = program_of(
        tmp_path, 'import torch\ntorch.compile(torch.sin, backend="eager")(torch.ones(1))\n'
    ).run
    assert run.takes("dynamic")
    assert not run.takes("no_such_argument")
