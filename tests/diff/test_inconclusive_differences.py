"""Differences that prove nothing, and whose they are: chance, races, undefined casts, tracing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from compilescope import KernelDiffHarness
from diff import wrong_backends as wrong

pytestmark = pytest.mark.torch
X = torch.linspace(-2, 2, 32).reshape(4, 8)
DROPPING = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))


def compared(model: Any, example: Any = X, backend: Any = "aot_eager", **options: Any) -> Any:
    torch.manual_seed(0)
    return KernelDiffHarness(model, example, test_backend=backend, **options).compare()


def test_other_random_numbers_prove_nothing_and_are_named() -> None:
    report = compared(DROPPING, X, wrong.drawing_more)
    assert report.verdict == "unknown"
    assert "aten.bernoulli_" in report.reason
    assert "dropout.py" in report.reason


def test_what_hangs_on_no_random_number_is_judged_all_the_same() -> None:
    def both(x: torch.Tensor) -> Any:
        return F.dropout(x, 0.5), x * 2

    def off(outputs: list[Any]) -> list[Any]:
        torch.rand(7)
        return [outputs[0], outputs[1] + 0.5]

    report = compared(both, X, wrong.changing(off))
    assert report.verdict == "fail"
    assert [d.path for d in report.diffs if d.verdict == "fail"] == ["output[1]"]


def test_a_wrong_result_of_replayed_random_numbers_is_wrong() -> None:
    assert compared(DROPPING, X, wrong.changing(lambda o: [o[0] * 1.01])).verdict == "fail"


def test_races_are_told_from_errors() -> None:
    report = compared(nn.Linear(8, 8), X, wrong.racing)
    assert report.verdict == "unknown"
    assert "data race" in report.reason
    assert compared(nn.Linear(8, 8), X, wrong.racing_far_off).verdict == "fail"


def test_a_racing_reference_proves_nothing() -> None:
    import random

    chance = random.SystemRandom()

    def unsteady(x: torch.Tensor) -> torch.Tensor:
        return x + number()

    @torch.compiler.disable
    def number() -> float:
        return chance.random()

    report = compared(unsteady)
    assert report.verdict == "unknown", report.summary()


def test_a_cast_that_c_leaves_open_is_named() -> None:
    def cast(x: torch.Tensor) -> torch.Tensor:
        return (x * 1000).to(torch.int8)

    saturating = wrong.replacing("to", lambda x, dtype: x.clamp(-128, 127).trunc().to(dtype))

    def backend(graph: Any, inputs: Any) -> Any:
        for node in graph.graph.nodes:
            if node.op == "call_method" and node.target == "to":
                node.op = "call_function"
        return saturating(graph, inputs)

    report = compared(cast, X, backend)
    assert report.verdict == "unknown"
    assert "undefined" in report.reason and "saturates" in report.reason
    fitting = compared(lambda x: (x * 10).to(torch.int8), X, backend)
    assert fitting.verdict == "pass"


def test_tracing_is_told_from_the_backend() -> None:
    def unlike(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if torch.compiler.is_compiling() else x

    report = compared(unlike)
    assert report.verdict == "fail"
    assert "Dynamo's tracing" in report.reason
    # Against something that was traced as well there is no difference.
    assert compared(unlike, reference_backend="eager_noexcept").verdict == "pass"


def test_padding_in_an_encoder_is_tracing() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1).eval()
    padding = torch.tensor([[False, False, False, True], [False, False, True, True]])
    kwargs = {"src_key_padding_mask": padding}
    with torch.no_grad():
        report = compared(encoder, torch.randn(2, 4, 8), kwargs=kwargs)
    assert report.verdict == "fail", report.summary()
    assert "the backend is right" in report.reason


def test_a_float64_run_of_another_branch_is_not_believed() -> None:
    def by_dtype(x: torch.Tensor) -> torch.Tensor:
        return x.exp() if x.dtype is torch.float32 else x.sin()

    off = wrong.changing(lambda o: [o[0] * 1.5])
    report = compared(by_dtype, X, off)
    assert report.verdict == "fail", report.summary()
    assert any("a different result" in note for note in report.notes)


def test_a_branch_on_a_number_that_float64_sees_otherwise() -> None:
    def by_number(x: torch.Tensor) -> torch.Tensor:
        third = torch.tensor(1 / 3, dtype=torch.float32)
        return x.exp() if bool((third * 3 - 1) == 0) else x.sin()

    report = compared(by_number)
    assert report.verdict == "pass"
    assert not report.anchored
    assert any("different branches" in note for note in report.notes)


def test_chaos_is_no_error() -> None:
    def chaotic(x: torch.Tensor) -> torch.Tensor:
        x = x.sigmoid()
        for _ in range(60):
            x = 3.9 * x * (1 - x)
        return x

    rounding = wrong.replacing("sigmoid", lambda x: x.double().sigmoid().float())

    def backend(graph: Any, inputs: Any) -> Any:
        for node in graph.graph.nodes:
            if node.op == "call_method" and node.target == "sigmoid":
                node.op = "call_function"
        return rounding(graph, inputs)

    report = compared(chaotic, torch.rand(64), backend)
    assert report.verdict != "fail", report.summary()
