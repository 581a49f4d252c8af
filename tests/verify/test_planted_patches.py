"""The judge on patches that nobody vouches for: no wrong one is verified, and right ones are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from compilescope.change.fixes.diffs import unified_diff
from compilescope.change.fixes.subject import Program, Subject, subjects_of
from compilescope.change.repair.search.attempts import gains
from compilescope.change.repair.search.options import SearchOptions
from compilescope.change.repair.trials.recorded_runs import Verification
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.verification.proposal import (
    PatchRejected,
    ProposalJudge,
    patched_texts,
)
from compilescope.instrument.recorder.target import Target
from verify.planted_patches import CAUSES, PROGRAMS, RIGHT, WRONG, PlantedPatch

pytestmark = pytest.mark.torch
Judged = Callable[[PlantedPatch], Verification]


class _JudgeOfProgram:
    """One program is run once, whatever is tried on it."""

    def __init__(self, name: str, folder: Path, warm: WarmParent, held: ExitStack) -> None:
        script = folder / f"{name}.py"
        script.write_text(PROGRAMS[name])
        target = Target("script", (str(script),))
        bench = held.enter_context(SearchOptions().workbench(target, warm=warm))
        self._texts = {str(script): PROGRAMS[name]}
        self._folder = str(folder)
        self._judge = ProposalJudge(bench, Version(), self._texts)
        seen = self._judge.baseline.captured
        program = Program(seen.run, seen.digest, str(script))
        (self._subject,) = (
            each for each in subjects_of(program) if CAUSES[name] in each.finding.source
        )

    def judged(self, patch: PlantedPatch) -> Verification:
        subject: Subject = self._subject
        diff = unified_diff(self._texts, dict.fromkeys(self._texts, patch.text), self._folder)
        texts = patched_texts(diff, self._texts, self._folder)
        gone = {subject.finding.fingerprint}
        return self._judge.judge(texts, gone, lambda found: gains(subject, found)).verification


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    known: dict[str, _JudgeOfProgram] = {}
    here = os.getcwd()
    folder = tmp_path_factory.mktemp("planted")
    os.chdir(folder)
    with ExitStack() as held:
        warm = held.enter_context(WarmParent())

        def judge(patch: PlantedPatch) -> Verification:
            name = patch.program
            if name not in known:
                known[name] = _JudgeOfProgram(name, folder, warm, held)
            return known[name].judged(patch)

        yield judge
    os.chdir(here)


def _params(patches: tuple[PlantedPatch, ...]) -> Iterator[object]:
    for each in patches:
        marks = () if each.quick else (pytest.mark.slow,)
        yield pytest.param(each, id=f"{each.program}-{each.name}", marks=marks)


# All of them: about 25 min on two busy cores.
@pytest.mark.parametrize("patch", list(_params(WRONG)))
def test_no_wrong_patch_is_verified(patch: PlantedPatch, judged: Judged) -> None:
    try:
        found = judged(patch)
    except PatchRejected as error:
        assert str(error)
        return
    assert found.verdict != "verified", found.checks
    assert found.reason


@pytest.mark.parametrize("patch", list(_params(RIGHT)))
def test_a_right_patch_is_verified(patch: PlantedPatch, judged: Judged) -> None:
    found = judged(patch)
    assert found.verdict == "verified", found.reason
    assert found.after.breaks < found.before.breaks
    assert "the recorded inputs" in found.inputs


def test_there_are_enough_of_them() -> None:
    assert len(WRONG) >= 100 and len(RIGHT) >= 15
    assert len({(each.program, each.name) for each in (*RIGHT, *WRONG)}) == len(RIGHT) + len(WRONG)
    for each in (*RIGHT, *WRONG):
        compile(each.text, each.name, "exec")
