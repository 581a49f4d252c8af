"""Regions replayed: which there are, and that the program sees nothing of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compilescope.change.repair.trials.recorded_runs import ReplayedRun
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target

pytestmark = [pytest.mark.torch, pytest.mark.slow]

_REGIONS = """import torch


@torch.compile(backend="eager")
def inner(x):
    return x + 1


@torch.compile(backend="eager", fullgraph=True)
def outer(x):
    return inner(x) * 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Linear(3, 3)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.w(x)


class Tool:
    @torch.compile(backend="eager")
    def work(self, x):
        return x - 1


net, other = Net(), Net()
wrapped = torch.compile(net, backend="eager")
other.compile(backend="eager")
x = torch.ones(3)
total = outer(x).sum() + wrapped(x).sum() + wrapped(x * 2).sum() + other(x).sum()
total = total + Tool().work(x).sum() + torch.rand(1)
total.backward()
print(f"{total.item():.4f}", net.calls, other.calls, float(net.w.weight.grad.sum()))
"""


_MODULES = """import torch


class Block(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.lin = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.inner(self.lin(x))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(Block(torch.nn.ReLU()))

    def forward(self, x):
        return self.block(x).sum()


torch.manual_seed(0)
model = Model()
print(f"{model(torch.ones(2, 3)).item():.4f} {model(torch.zeros(4, 3)).item():.4f}")
"""


def _probe(tmp_path: Path, text: str, **options: Any) -> tuple[ReplayedRun, ReplayedRun, bytes]:
    file = tmp_path / "program.py"
    file.write_text(text)
    with Workbench(Target("script", (str(file),)), **options) as bench:
        captured = bench.watch(Version())
        probed = bench.probe(Version(), compiled=False)
        return probed, bench.probe(Version(), compiled=True, like=probed), captured.stdout


def test_all_kinds_of_regions(tmp_path: Path) -> None:
    probed, compiled, printed = _probe(tmp_path, _REGIONS)
    assert probed.exit_status == compiled.exit_status == 0, probed.stderr.decode()
    for seen in (probed, compiled):
        # The real calls saw no replay: neither counts nor weights nor random numbers.
        assert seen.stdout == printed
        assert seen.record["regions"] == ["outer", "Net", "Net", "Tool.work"]
        assert not any(call["left_out"] for call in seen.calls)
    assert [call["call"] for call in probed.calls if call["region"] == 1] == [1, 2]
    modes = {replay["mode"] for call in compiled.calls for replay in call["replays"]}
    assert modes == {"eager", "compiled"}
    net = next(call for call in probed.calls if call["name"] == "Net")
    assert net["replays"][0]["train"]


def test_modules_that_a_name_compiles_are_regions(tmp_path: Path) -> None:
    """One within another of its name is a part of that one."""
    probed, compiled, printed = _probe(
        tmp_path, _MODULES, compile_names=("Block",), backend="eager"
    )
    for seen in (probed, compiled):
        assert seen.exit_status == 0, seen.stderr.decode()
        assert seen.stdout == printed
        assert seen.record["regions"] == ["Module._wrapped_call_impl"]
        assert [call["call"] for call in seen.calls] == [1, 2]
        assert not any(call["left_out"] for call in seen.calls)


def test_a_region_that_cannot_be_called_again_says_so(tmp_path: Path) -> None:
    text = (
        'import torch\n\n\n@torch.compile(backend="eager")\ndef f(items):\n'
        "    return sum(items)\n\n\nprint(f(torch.ones(2) for _ in range(3)))\n"
    )
    probed, _, printed = _probe(tmp_path, text)
    assert probed.stdout == printed
    assert "generator" in probed.calls[0]["left_out"]


_OPTIMIZER = """import torch


@torch.compile(backend="eager")
def step(model, optimizer, x):
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


torch.manual_seed(0)
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(3):
    print(step(model, optimizer, torch.ones(4, 3)))
"""


def test_what_an_optimizer_keeps_is_compared(tmp_path: Path) -> None:
    """Of each weight, also what the first step makes."""
    eager, compiled, _ = _probe(tmp_path, _OPTIMIZER)
    for call in (*eager.calls, *compiled.calls):
        changed = {path for each in call["replays"] for path in each["changed"]}
        kept = {path for path in changed if "exp_avg" in path and "exp_avg_sq" not in path}
        assert len(kept) == 2, changed
