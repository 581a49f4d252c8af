"""Made-up inputs that end the process, as an index out of range does on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.change.fixes.patch import Allowance
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.recorded_runs import ReplayedRun
from compilescope.change.repair.trials.verifier import verify
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target

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
    assert notes == ["other integers end the process in `f`: skipped"]
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


_CHECKED = """import os
import torch


@torch.library.custom_op("kernels::stop_unless", mutates_args=())
def stop_unless(holds: torch.Tensor) -> torch.Tensor:
    if not holds:
        os.abort()  # As a check does that fails on a GPU.
    return holds.clone()


stop_unless.register_fake(lambda holds: torch.empty_like(holds))


@torch.compile(backend="eager")
def f(x):
    if not (x < 4).all():
        raise ValueError("too large")
    return x * 2


print(f(torch.ones(3)).sum().item())
"""
_BRANCH = """    if not (x < 4).all():
        raise ValueError("too large")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "verdict", "reason"),
    [
        ("stop_unless((x < 4).all())", "unverified", "was never true"),
        ("torch._assert_async((x < 4).all(), 'too large')", "verified", ""),
    ],
    ids=["unlike", "same condition"],
)
def test_a_version_that_ends_where_the_original_raises(
    tmp_path: Path, warm: WarmParent, text: str, verdict: str, reason: str
) -> None:
    file = tmp_path / "program.py"
    file.write_text(_CHECKED)
    also = "" if text.startswith("stop") else "    stop_unless((x < 4).all())\n"
    version = Version({str(file): _CHECKED.replace(_BRANCH, f"{also}    {text}\n")})
    with Workbench(Target("script", (str(file),)), warm=warm) as bench:
        baseline = TrialBaseline(bench)
        (gone,) = {site.fingerprint for site in baseline.captured.digest.sites}
        allows: frozenset[Allowance] = frozenset({"exception-type"})
        found = verify(bench, baseline, version, gone={gone}, patch_allows=allows)
        assert found.verdict == verdict, found
        assert reason in found.reason
        words = "inputs on which the original raises end the process: not compared"
        assert words in found.notes
        assert "all values 0" in found.inputs or verdict == "unverified"
        strict = verify(bench, baseline, version, gone={gone})
        assert strict.verdict != "verified"


_ONLY_IN_A_FORK = """import os, sys
import torch


@torch.compile(backend="eager")
def f(x):
    if "compilescope.change.repair.trials.warm.fork_server" in sys.modules:
        os.abort()
    return x * 2


print(f(torch.ones(3)).sum().item())
"""


def test_where_a_fork_dies_a_fresh_process_is_asked(tmp_path: Path, warm: WarmParent) -> None:
    file = tmp_path / "program.py"
    file.write_text(_ONLY_IN_A_FORK)
    with Workbench(Target("script", (str(file),)), warm=warm) as bench:
        probed = bench.probe(Version(), compiled=False)
        assert not bench.cold
        assert probed.exit_status == 0, probed.stderr.decode()
        assert [call["left_out"] for call in probed.calls] == [""]


@pytest.mark.parametrize(
    ("error", "is_compiled"),
    [
        (None, True),
        (("IndexError", "index 7 is out of bounds for dimension 0 with size 4", False), False),
        (("RuntimeError", "index 7 is out of bounds for dimension 1 with size 3", False), False),
        (
            (
                "RuntimeError",
                "Index 0 of input takes value 7 which is not in the valid range",
                False,
            ),
            False,
        ),
        (("ValueError", "the step is out of range", True), True),
        (("RuntimeError", "Class values must be smaller than num_classes.", False), True),
    ],
)
def test_no_compiled_code_is_given_an_index_beyond_the_range(
    error: tuple[str, str, bool] | None, is_compiled: bool
) -> None:
    """With threads that is the end of the process (torch 2.13, `gather`); others may just read."""
    told = dict(zip(("type", "message", "raised"), error, strict=True)) if error else None
    replay = {"recipe": ["extreme", 0, ""], "mode": "eager", "error": told}
    call = {"region": 0, "call": 1, "replays": [{**replay, "train": False, "changed": []}]}
    plan = ReplayedRun(Path(), {"calls": [call]}).plan_without()
    assert plan[0]["recipes"] == [[["extreme", 0, ""], is_compiled]]
