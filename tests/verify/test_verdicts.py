"""Real programs, changed by hand: verified, changed, worse or unknown, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from compilescope.change.repair.search.options import ProgramOptions
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.verification.run import VerifiedChange, verify_change
from compilescope.change.repair.verification.version_pairs import against_file
from compilescope.instrument.recorder.target import Target
from compilescope.record.bodies import ChangeOutcome
from compilescope.record.run import read_run
from verify.changes import CHANGES, Change

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmParent]:
    with WarmParent() as parent:
        yield parent


def _verified(folder: Path, before: str, after: str, warm: WarmParent, **more) -> VerifiedChange:
    program, other = folder / "program.py", folder / "other.py"
    program.write_text(before)
    other.write_text(after)
    options = ProgramOptions(home=folder / "runs")
    pair = against_file(str(program), other)
    return verify_change(
        Target("script", (str(program),)), pair, options, warm=warm, **{"timed": False, **more}
    )


def _params() -> Iterator[object]:
    for change in CHANGES:
        marks = () if change.quick else (pytest.mark.slow,)
        yield pytest.param(change, id=change.name, marks=marks)


@pytest.mark.parametrize("change", list(_params()))
def test_a_change_by_hand(tmp_path: Path, change: Change, warm: WarmParent) -> None:
    after = change.after
    if change.name == "function-moved":
        method = "    def hidden(self, x):\n        return torch.relu(self.lin(x))\n\n"
        after = after.replace("    def forward", f"{method}    def forward")
    found = _verified(tmp_path, change.before, after, warm).outcome
    assert found.verdict == change.verdict, found
    told = json.dumps(msgspec.to_builtins(found), ensure_ascii=False)
    assert change.words in (found.reason or told), found
    assert (tmp_path / "program.py").read_text() == change.before


@pytest.mark.slow
def test_both_runs_are_kept_with_the_answer(tmp_path: Path, warm: WarmParent) -> None:
    change = next(each for each in CHANGES if each.name == "a-break")
    found = _verified(tmp_path, change.before, change.after, warm, timed=True)
    run = read_run(tmp_path / "runs" / found.run)
    ((_, kept),) = run.of(ChangeOutcome)
    assert kept == found.outcome
    assert (tmp_path / "runs" / kept.original).is_dir()
    assert kept.times is not None and kept.times.warm_call is not None
    assert [each.line for each in kept.new] == [15]
    assert kept.diff.startswith("--- a/program.py")
