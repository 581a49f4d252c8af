"""Where the step of a program is, and what it computes, in the shapes that others' scripts have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compilescope.change.tune.first_run import FirstRun, FirstRunner
from compilescope.change.tune.judge import NumbersJudge
from compilescope.change.tune.measurement import Meter
from compilescope.change.tune.options import TuneOptions
from compilescope.instrument.recorder.target import Target

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(600)]

GENERATES = """
import torch
from torch import nn

attend = torch.compile(lambda x: x.softmax(-1), backend="eager")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(6))

    def forward(self, x):
        for layer in self.layers:
            x = attend(layer(x))
        return x


@torch.compile(backend="eager", fullgraph=True)
def decode(model, x):
    return model(x)


def generate(model, count):
    x = model(torch.ones(4, 8))
    for _ in range(count):
        x = decode(model, x)
    return x


with torch.no_grad():
    model = Model()
    for sample in range(3):
        generate(model, 40)
"""

TIMES = """
import time

import torch
from torch import nn

torch.manual_seed(0)
model = torch.compile(nn.Sequential(nn.Linear(64, 64), nn.GELU()), backend="aot_eager")
x = torch.randn(4, 64)


def step():
    begun = time.perf_counter()
    model(x)
    return time.perf_counter() - begun


with torch.inference_mode():
    total = 0.0
    for _ in range(400):
        total += step()
"""

REFUSES_FLOAT64 = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.2), nn.Linear(64, 8))
compiled = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(400):
    loss = compiled(torch.ones(4, 64)).square().mean()
    if loss.dtype != torch.float32:
        raise TypeError(loss.dtype)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@contextmanager
def first_run(folder: Path, text: str) -> Iterator[tuple[FirstRun, Meter, TuneOptions]]:
    program, caches = folder / "program.py", folder / "caches"
    program.write_text(text)
    caches.mkdir()
    target, options = Target("script", (str(program),)), TuneOptions(jobs=1)
    with options.workbench(target) as bench:
        first = FirstRunner(target, options, bench, caches).run()
        meter = Meter(bench, options, first)
        try:
            yield first, meter, options
        finally:
            meter.close()


def test_a_loop_that_is_also_in_compiled_code_is_counted_where_it_is_eager(tmp_path: Path) -> None:
    """A graph break by what counts would end a program that forbids graph breaks."""
    with first_run(tmp_path, GENERATES) as (first, _, _):
        assert first.place.function == "generate" and first.place.head == "for _ in range(count)"


def test_what_compiled_code_returned_counts_where_no_variable_has_it(tmp_path: Path) -> None:
    with first_run(tmp_path, TIMES) as (first, meter, options):
        assert first.place.head == "for _ in range(400)"
        judge = NumbersJudge(meter, options)
        judge.anchor()
        assert judge.knows_float64
        assert judge.judge_itself().verdict == "pass"


def test_eager_mode_shows_what_rounding_does_where_float64_cannot(tmp_path: Path) -> None:
    with first_run(tmp_path, REFUSES_FLOAT64) as (_, meter, options):
        judge = NumbersJudge(meter, options)
        judge.anchor()
        assert not judge.knows_float64
        found = judge.judge_itself()
        assert found.verdict == "pass" and "eager mode" in found.reason, found
