"""Runs that serve two questions, and replays without Inductor: what is spared decides nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.verifier import confirm, verify
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.analysis.findings import findings

pytestmark = pytest.mark.torch
_BRANCHES = """import torch


@torch.compile(backend="eager")
def f(x, scale):
    if x.sum() > 0:
        x = x * scale
    print("in f")
    return x + 1


for number in range(3):
    y = f(torch.full((2, number + 1), float(number)), number)
    print(y.sum().item())
"""


def test_variables_are_recorded_while_regions_are_replayed(
    tmp_path: Path, warm: WarmParent
) -> None:
    """And nothing of what the replays are given is seen."""
    file = tmp_path / "program.py"
    file.write_text(_BRANCHES)
    places = [(str(file), 6), (str(file), 13)]
    with Workbench(Target("script", (str(file),)), warm=warm) as bench:
        alone = bench.survey(Version(), places)
        original = TrialBaseline(bench)
        assert original.survey(places) == alone
        replays = original.probed.calls[0]["replays"]
        assert len(replays) > 3 and original.probed.stdout == original.captured.stdout
        assert alone.at(str(file), 6, "x") and alone.reached(str(file), 13)
        # Once the replays are there, a survey is a run of its own.
        probed = original.probed.folder
        assert original.survey(places[:1]).at(str(file), 6, "x")
        assert original.probed.folder == probed


_PRINTS = """import torch
{settings}

@torch.compile
def f(x):
    x = torch.nn.functional.dropout(x)
    {line}
    return x + 1


f(torch.ones(32))
"""


@pytest.mark.slow
def test_what_holds_only_without_inductor_is_not_verified(tmp_path: Path, warm: WarmParent) -> None:
    file = tmp_path / "program.py"
    file.write_text(_PRINTS.format(settings="", line="torch._dynamo.graph_break()"))
    changed = "import torch._inductor.config\ntorch._inductor.config.fallback_random = False\n"
    right, wrong = (
        Version({str(file): _PRINTS.format(settings=settings, line="pass")})
        for settings in ("", changed)
    )
    with Workbench(Target("script", (str(file),)), warm=warm) as bench:
        original = TrialBaseline(bench)
        light = TrialBaseline(bench, values=original, light=True)
        gone = {each.fingerprint for each in findings(original.captured.digest)}
        for version, verdict in ((right, "verified"), (wrong, "rejected")):
            assert verify(bench, light, version, gone=gone).verdict == "verified"
            last = confirm(bench, original, version, gone=gone, replayed=False)
            assert last.verdict == verdict, last.reason
        assert not bench.cold
