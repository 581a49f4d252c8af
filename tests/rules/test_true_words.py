"""What rules say is what the run showed."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.apps.front import Capture
from rules.test_rules import capture

pytestmark = pytest.mark.torch


def words(run: Capture) -> str:
    causes = [cause for frame in run.recompiles for cause in frame.causes]
    found = [*run.breaks, *causes]
    return "\n".join(f"{each.why} {' '.join(r.text for r in each.remedy)}" for each in found)


def test_a_call_that_eager_mode_runs_is_not_called_wrong(tmp_path: Path) -> None:
    program = """
import torch
import torch.nn.functional as F

@torch.compile(backend="eager", dynamic=True)
def attend(q):
    length = q.size(2)
    return F.scaled_dot_product_attention(q, q, q, is_causal=length > 1) * 2

attend(torch.ones(1, 2, 5, 8))
"""
    (site,) = capture(program, tmp_path).breaks
    assert site.rule == "symbolic-value"
    assert "`length > 1` is symbolic" in site.why
    assert "`True if length > 1 else False`" in site.remedy[0].text
    assert site.returned


def test_a_number_of_a_plain_class_is_not_on_a_module(tmp_path: Path) -> None:
    program = """
import torch

class Base:
    pass

class Counter(Base):
    def __init__(self):
        self.calls = 2

    def scale(self, x):
        return x * self.calls

counter = Counter()
scale = torch.compile(counter.scale, backend="eager")
for number in range(2, 6):
    counter.calls = number
    scale(torch.ones(3))
"""
    ((cause,),) = [frame.causes for frame in capture(program, tmp_path).recompiles]
    assert cause.rule == "int-change"
    assert "nn.Module" not in cause.why


def test_a_class_with_a_base_from_elsewhere_may_be_a_module(tmp_path: Path) -> None:
    program = """
import torch
from torch.nn import Module as Part

class Counter(Part):
    def __init__(self):
        super().__init__()
        self.calls = 2

    def forward(self, x):
        return x * self.calls

counter = Counter()
scale = torch.compile(counter, backend="eager")
for number in range(2, 5):
    counter.calls = number
    scale(torch.ones(3))
"""
    ((cause,),) = [frame.causes for frame in capture(program, tmp_path).recompiles]
    assert cause.rule == "module-number"


def test_the_function_that_calls_a_module_is_not_said_to_be_compiled(tmp_path: Path) -> None:
    program = """
import torch
from torch import nn

def evaluate(model, x):
    with torch.no_grad():
        return model(x)

def train(model, x):
    return model(x).sum()

model = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), backend="eager")
for _ in range(2):
    train(model, torch.ones(2, 4))
    evaluate(model, torch.ones(2, 4))
"""
    said = words(capture(program, tmp_path))
    assert "`forward` was compiled with gradients on" in said
    assert "`evaluate` was compiled" not in said and "`train` was compiled" not in said


def test_a_schedule_is_told_by_what_was_seen(tmp_path: Path) -> None:
    program = """
import torch

weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)

@torch.compile(backend="eager")
def step(x):
    return x * optimizer.param_groups[0]["lr"]

for number in range(1, 13):
    optimizer.param_groups[0]["lr"] = 0.1 / number
    step(torch.ones(3))
"""
    run = capture(program, tmp_path)
    said = words(run)
    assert "once for each" not in said
    count = sum(frame.count for frame in run.recompiles)
    assert count < 11
    assert ("again once because of it" if count == 1 else f"again {count} times") in said


def test_clearing_gradients_is_told_as_torch_tells_it(tmp_path: Path) -> None:
    program = """
import torch

linear = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)

@torch.compile(backend="eager")
def step(x):
    optimizer.zero_grad()
    return linear(x).sum()

step(torch.ones(2, 2))
"""
    (site,) = capture(program, tmp_path).breaks
    assert "skipped" in site.why and "autograd" not in site.why
    assert "outside of `step`" in site.remedy[0].text


def test_a_break_in_torchs_own_code_is_not_the_users_call(tmp_path: Path) -> None:
    """As with DistributedDataParallel, whose forward calls a logger in C++."""
    package = tmp_path / "site-packages" / "torch" / "parallel_part"
    package.mkdir(parents=True)
    (package / "wrapper.py").write_text(
        "import time\n\nclass Wrapper:\n    def run(self, x):\n"
        "        y = x * 2\n        time.sleep(0)\n        return y + 1\n"
    )
    program = f"""
import sys
sys.path.insert(0, {str(package)!r})
import torch
from wrapper import Wrapper

wrapper = Wrapper()

def train(x):
    return wrapper.run(x) + 1

torch.compile(train, backend="eager")(torch.ones(3))
"""
    site, *_ = capture(program, tmp_path).breaks
    assert site.beneath is not None and site.beneath.origin == "torch"
    assert site.source.strip() == "return wrapper.run(x) + 1"
    assert "PyTorch's own" in site.why and "C code" not in site.why
    assert "in the caller" not in " ".join(each.text for each in site.remedy)
