"""What examining a model on a backend finds: planted breaks, recompiles, violations, numbers."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compilescope.base.errors import ToolError  # noqa: E402
from compilescope.measure.bench import examination  # noqa: E402
from compilescope.measure.bench.examination import examine  # noqa: E402
from compilescope.measure.bench.measurement import found_once  # noqa: E402
from compilescope.measure.bench.protocol import Examination, Spec  # noqa: E402
from compilescope.record.bodies import TensorDiff, Violation  # noqa: E402

pytestmark = pytest.mark.torch
PROGRAM = """
import torch

class Breaking(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
    def forward(self, x):
        x = self.linear(x)
        print("between two graphs")
        return torch.relu(x)

class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        return self.linear(x) * self.calls

def breaking():
    return Breaking(), (torch.randn(4, 8),)
def counting():
    return Counting(), (torch.randn(4, 8),)
def odd():
    return torch.nn.Linear(7, 13), (torch.randn(5, 7),)
def even():
    return torch.nn.Linear(32, 64), (torch.randn(16, 32),)

def wrong(graph, inputs):
    def run(*args):
        return tuple(each * 1.01 for each in graph(*args))
    return run
def refusing(graph, inputs):
    raise RuntimeError("no such kernel")
def failing(graph, inputs):
    def run(*args):
        raise RuntimeError("device lost")
    return run
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("models") / "my_examined_models.py"
    path.write_text(PROGRAM)
    return str(path)


@functools.cache
def examined(file: str, model: str, backend: str = "aot_eager", **more: Any) -> Examination:
    """Once, whoever asks: an examination is not changed."""
    return examine(Spec(model=f"{file}:{model}", backend=backend, warmup=1, **more))


def test_eager_has_nothing_to_examine(file: str) -> None:
    assert examined(file, "even", "eager", constraints="npu-a") == Examination()


def test_graph_break_of_a_model_that_prints(file: str) -> None:
    found = examined(file, "breaking")
    assert (found.graphs, found.breaks, found.recompiles) == (2, 1, 0)
    assert found.kerneldiff == "pass"
    assert found.violations is None


def test_recompiles(file: str) -> None:
    found = examined(file, "counting")
    assert found.breaks == 0
    assert found.recompiles is not None and found.recompiles >= 1
    assert found.graphs == found.recompiles + 1


def test_violations_carry_the_model(file: str) -> None:
    found = examined(file, "odd", constraints="npu-a")
    of_device = [body for body in found.bodies if isinstance(body, Violation)]
    assert found.violations == sum(body.severity == "error" for body in of_device) > 0
    assert {(body.model, body.device) for body in of_device} == {(f"{file}:odd", "npu-a")}
    assert len(found.stacks) == len(found.bodies)
    assert examined(file, "even", constraints="npu-a").violations == 0


def test_violations_are_at_the_models_own_lines(file: str) -> None:
    found = examined(file, "breaking", constraints="npu-a")
    frames = {stack[-1] for stack in found.stacks if stack}
    assert {(frame.file, frame.source.strip()) for frame in frames} >= {
        (file, "x = self.linear(x)")
    }
    # A bare nn.Linear has no line in the user's file; the one of ours that calls it is no place.
    bare = [frame for stack in examined(file, "odd", constraints="npu-a").stacks for frame in stack]
    assert not any(Path(examination.__file__).parent in Path(frame.file).parents for frame in bare)


def test_backends_that_are_handed_the_same_graphs_share_violations(file: str) -> None:
    one, other = (
        Examination(bodies=found.bodies, stacks=found.stacks, violations=found.violations)
        for found in (examined(file, "odd", b, constraints="npu-a") for b in ("mock", "aot_eager"))
    )
    kept = [body for body, _ in found_once([one, other])]
    assert sum(isinstance(body, Violation) for body in kept) == one.violations
    assert sum(isinstance(body, TensorDiff) for body in kept) == 2


def test_training_checks_the_backward_pass_and_gradients(file: str) -> None:
    forward = examined(file, "odd", constraints="npu-a")
    training = examined(file, "odd", mode="training", constraints="npu-a")
    assert (training.violations or 0) > (forward.violations or 0)
    assert training.kerneldiff == "pass"
    assert {body.role for body in training.bodies if isinstance(body, TensorDiff)} >= {"gradient"}


def test_a_backward_pass_that_no_graph_holds_is_said(file: str) -> None:
    found = examined(file, "odd", "mock", mode="training", constraints="npu-a")
    assert any("Not checked on npu-a: the backward pass" in note for note in found.notes)
    assert found.violations


def test_wrong_numbers_fail(file: str) -> None:
    found = examined(file, "even", f"{file}:wrong")
    assert found.kerneldiff == "fail"
    assert (found.graphs, found.breaks) == (1, 0)
    diffs = [body for body in found.bodies if isinstance(body, TensorDiff)]
    assert [(body.verdict, body.model, body.test) for body in diffs] == [
        ("fail", f"{file}:even", f"{file}:wrong")
    ]
    assert any("KernelDiff: 1 of 1 values differ" in note for note in found.notes)


@pytest.mark.parametrize(
    ("backend", "words"), [("refusing", "no such kernel"), ("failing", "device lost")]
)
def test_a_backend_that_raises_is_a_note(file: str, backend: str, words: str) -> None:
    found = examined(file, "even", f"{file}:{backend}", constraints="npu-a")
    assert (found.graphs, found.breaks, found.recompiles, found.violations) == (None,) * 4
    assert found.kerneldiff == "fail"
    assert [words in note for note in found.notes] == [True]


def test_too_little_memory_leaves_the_numbers_unknown(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "free_bytes", lambda: 1000)
    found = examined.__wrapped__(file, "even")
    assert (found.graphs, found.kerneldiff) == (1, "unknown")
    assert any("KernelDiff was not run: it needs about" in note for note in found.notes)


def test_unknown_names_are_said_before_anything_is_built(file: str) -> None:
    with pytest.raises(ToolError, match="no device named"):
        examined(file, "even", constraints="npu-zzz")
    with pytest.raises(ToolError, match="no model named"):
        examine(Spec(model="zzz", backend="aot_eager"))


def test_low_precision_has_its_own_tolerance(file: str) -> None:
    assert examined(file, "even", dtype="bfloat16").kerneldiff == "pass"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["inference", "training"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "mamba", "resnet", "unet", "vit"])
def test_models_here_compile_into_one_graph(name: str, mode: Any) -> None:
    if name in ("bert", "gpt2", "llama", "vit"):
        pytest.importorskip("transformers")
    found = examine(Spec(model=name, backend="aot_eager", mode=mode, small=True, warmup=1))
    assert (found.graphs, found.breaks, found.recompiles) == (1, 0, 0)
    assert found.kerneldiff == "pass", found.notes
