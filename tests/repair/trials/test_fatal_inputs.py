"""Made-up inputs that end the process, as an index out of range does on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.recorder.target import Target
from compilescope.repair.trials.baseline import TrialBaseline
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.warm.parent import WarmParent
from compilescope.repair.trials.workbench import Workbench

pytestmark = [pytest.mark.torch]

_PROGRAM = """import os
import torch


@torch.library.custom_op("kernels::pick", mutates_args=())
def pick(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    if {fatal}:
        os.abort()
    return x[rows]


pick.register_fake(lambda x, rows: x.new_empty(rows.shape[0], x.shape[1]))


@torch.compile(backend="eager")
def f(x, rows):
    return pick(x, rows) * 2


print(f(torch.ones(8, 3) / 2, torch.tensor([0, 7, 3])).sum().item())
"""
_BEYOND = "rows.max() > 7 or rows.min() < 0"
_ODD = "not (0 < float(x.min()) <= float(x.max()) < 1)"


def _replayed(
    tmp_path: Path, warm: WarmParent, fatal: str
) -> tuple[set[str], list[str], list[str]]:
    """The kinds of inputs that were replayed, what a verdict notes, and what speaks against it."""
    file = tmp_path / "program.py"
    file.write_text(_PROGRAM.format(fatal=fatal))
    with Workbench(Target("script", (str(file),)), warm=warm) as bench:
        baseline = TrialBaseline(bench)
        assert baseline.probed.exit_status == 0, baseline.probed.stderr.decode()
        again = bench.probe(Version(), compiled=True, like=baseline.probed)
        assert again.exit_status == 0
        kinds = {replay["recipe"][0] for call in again.calls for replay in call["replays"]}
        found = baseline.replayable
        return kinds, found.notes, [check.words for check in found.checks]


@pytest.mark.slow
def test_integers_beyond_the_range(tmp_path: Path, warm: WarmParent) -> None:
    kinds, notes, against = _replayed(tmp_path, warm, _BEYOND)
    assert {"recorded", "values", "nan"} <= kinds and not {"near", "extreme"} & kinds
    assert notes == ["other integers end the process in f: skipped"]
    assert not against


@pytest.mark.slow
def test_values_and_integers(tmp_path: Path, warm: WarmParent) -> None:
    kinds, notes, against = _replayed(tmp_path, warm, f"{_BEYOND} or {_ODD}")
    assert {"recorded", "drawn"} <= kinds and not {"values", "nan", "near"} & kinds
    assert len(notes) == 2 and not against


@pytest.mark.slow
def test_what_never_ends_the_process_is_asked(tmp_path: Path, warm: WarmParent) -> None:
    kinds, notes, against = _replayed(tmp_path, warm, "False")
    assert {"recorded", "values", "nan", "near", "extreme"} <= kinds
    assert not notes and not against
