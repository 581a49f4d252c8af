"""What calls of a program's regions take, whatever a version compiles of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.change.repair.trials.verifier import measure
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target

pytestmark = [pytest.mark.torch]
PROGRAM = """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return x.sin() + x.cos()

@torch.compile(backend="aot_eager")
def step(net, x):
    y = net(x)
    print(y.sum().item())
    return y * 2

net = Net()
for _ in range(4):
    step(net, torch.ones(3))
"""
AT_MODEL = PROGRAM.replace('@torch.compile(backend="aot_eager")\n', "").replace(
    "net = Net()", 'net = Net()\nnet.compile(backend="aot_eager")'
)
NOTHING = PROGRAM.replace('@torch.compile(backend="aot_eager")\n', "")


def test_versions_that_compile_other_things_are_weighed_by_the_same_calls(
    tmp_path: Path, warm: WarmParent
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    model, nothing = (Version({str(program): text}) for text in (AT_MODEL, NOTHING))
    with Workbench(Target("script", (str(program),)), warm=warm) as bench:
        every = bench.weigh(Version(), "all")
        assert every is not None and every.operators == 5
        counts = [bench.weigh(each, "graphs") for each in (Version(), model, nothing)]
        assert [each and each.operators for each in counts] == [5, 3, 0]
        assert bench.moves(model) and not bench.moves(Version())
        times = measure(bench, Version(), model, rounds=1, cold=0)
        assert times.before.steady is not None and times.after.steady is not None
        assert times.after.first is None and not times.reason
