"""Is the verdict right? Models that are easy to judge wrongly, and backends that are wrong."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import pytest
import torch
from torch import nn

from capabilities import expected
from compilescope import ComparisonConfig, KernelDiffHarness
from compilescope.base.errors import ToolError
from diff import wrong_backends as wrong

pytestmark = pytest.mark.torch
X = torch.linspace(-2, 2, 32).reshape(4, 8)


def compared(model: Any, example: Any = X, backend: Any = "aot_eager", **options: Any) -> Any:
    torch.manual_seed(0)
    return KernelDiffHarness(model, example, test_backend=backend, **options).compare()


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    rest: dict[str, Any]


Point = collections.namedtuple("Point", "x y")


def nested(x: torch.Tensor) -> Any:
    return {
        "a": (x + 1, [x * 2, None, 3, "word", 2.5, True]),
        1: Pair(x, {"z": x}),
        "p": Point(x, x),
    }


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 8)
        self.out = nn.Linear(8, 10, bias=False)
        self.out.weight = self.table.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.table(ids))


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += 1
        return x + self.seen


def in_place(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    x.view(-1)[0] = 5
    return x * 2


def with_breaks(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    print("", end="")
    z = y.cos()
    print("", end="")
    return z * 2


RIGHT = {
    "nested": (nested, X),
    "nan": (lambda x: (torch.log(x), x / 0), X),
    "tied": (Tied(), torch.arange(6).reshape(2, 3)),
    "in place": (in_place, X),
    "buffers": (nn.BatchNorm1d(8), X),
    "breaks": (with_breaks, X),
    "complex": (torch.fft.fft, X),
    "sparse": (lambda x: x.relu().to_sparse(), X),
    "quantized": (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), X),
    "empty": (lambda x: (x[:0], x[:, 8:] + 1), X),
    "scalars": (lambda x: (x.sum(), 3, "word"), X),
    "dropout": (nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)), X),
    "half": (nn.Linear(8, 8).bfloat16(), X.bfloat16()),
    "module as argument": (lambda m, x: m(x).relu(), (nn.Linear(8, 8), X)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_backend_passes(name: str) -> None:
    report = compared(*RIGHT[name])
    if name == "quantized" and not expected("tracing/quantized"):
        assert report.verdict == "unknown" and "nothing was compiled" in report.summary()
        return
    assert report.verdict == "pass", report.summary()
    assert report.compiles == (3 if name == "breaks" else 1)


WRONG = {
    "another function": (lambda x: x.sin(), wrong.changing(lambda o: [o[0] * 1.001])),
    "a value left out": (lambda x: (x + 1, x + 2), wrong.changing(lambda o: [o[0], None])),
    "another dtype": (lambda x: x + 1, wrong.changing(lambda o: [o[0].double()])),
    "another shape": (lambda x: x + 1, wrong.changing(lambda o: [o[0][:, :1]])),
    "float32 in float64": (
        lambda x: x.double() / 3,
        wrong.changing(lambda o: [o[0].float().double()]),
    ),
    "integers above 2**24": (
        lambda x: (x * 0).long() + 2**24,
        wrong.changing(lambda o: [o[0] + 1]),
    ),
    "the imaginary part": (torch.fft.fft, wrong.changing(lambda o: [o[0].conj().resolve_conj()])),
    "a NaN lost": (lambda x: torch.log(x), wrong.changing(lambda o: [o[0].nan_to_num()])),
    "an input's change": (lambda x: x.add_(1).sum() * 0, wrong.forgetful),
    "a buffer's change": (nn.BatchNorm1d(8), wrong.forgetful),
    "a stale buffer": (Counting(), wrong.baking),
    "one graph of three": (with_breaks, wrong.changing(lambda o: [o[0] + 0.01])),
    "no dropout": (nn.Dropout(0.5), wrong.dropping_no_value),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_backend_fails(name: str) -> None:
    model, backend = WRONG[name]
    report = compared(model, X, backend)
    assert report.verdict == "fail", report.summary()
    assert report.reason and not report.overall_passed


def test_what_a_test_raises_is_the_reason() -> None:
    report = compared(torch.sin, X, wrong.refusing)
    assert report.verdict == "fail"
    assert "ValueError: this chip has no sine" in report.reason
    assert "wrong_backends.py" in report.reason
    again = compared(torch.sin, X, wrong.refusing)
    assert again.reason == report.reason  # It has a fingerprint, which stays.
    assert "ArithmeticError" in compared(torch.sin, X, wrong.breaking).error_message


def test_an_error_that_dynamo_swallows_is_no_pass() -> None:
    import torch._dynamo.config as config

    with config.patch(suppress_errors=True):
        assert compared(torch.sin, X, wrong.refusing).verdict == "fail"


def test_nothing_compiled_is_no_pass() -> None:
    report = compared(lambda x: 3)
    assert report.verdict == "unknown"
    assert report.compiles == 0


def test_a_model_that_fails_by_itself_is_told() -> None:
    with pytest.raises(ToolError, match="The reference fails: RuntimeError"):
        compared(lambda x: x @ torch.ones(3))


def test_generators_are_refused() -> None:
    def lazily(x: torch.Tensor) -> Any:
        return (x + number for number in range(3))

    report = compared(lazily)
    assert report.verdict == "unknown"
    assert "only once" in report.reason
    with pytest.raises(ToolError, match=r"args\[0\] is a list_iterator"):
        compared(lambda items: next(items) + 1, (iter([X]),))


def test_sizes_and_special_values_on_request() -> None:
    report = compared(nn.Linear(8, 8), X, inputs=4)
    assert report.verdict == "pass", report.summary()
    assert report.inputs == 4
    assert report.compiles in (1, 2)  # Sizes seen before in this process are dynamic at once.
    # The sample shows nothing: only numbers that it does not have do.
    saturating = wrong.replacing(torch.relu, lambda x: x.clamp(0, 4))
    assert compared(torch.relu, X, saturating).verdict == "pass"
    report = compared(torch.relu, X, saturating, inputs=5)
    assert report.verdict == "fail"
    assert "input" in report.reason


def test_inputs_that_the_model_does_not_take_are_left_out() -> None:
    def fixed(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(4, 8) + 1

    report = compared(fixed, X, inputs=3)
    assert report.verdict == "pass"
    assert report.inputs == 2
    assert any("skipped: " in note for note in report.notes)


def test_a_tolerance_that_was_given_holds() -> None:
    off = wrong.changing(lambda o: [o[0] + 1e-3])
    assert compared(torch.sin, X, off).verdict == "fail"
    loose = ComparisonConfig(atol=1e-2)
    assert compared(torch.sin, X, off, comparison_config=loose).verdict == "pass"
    with pytest.raises(ToolError, match="not both"):
        KernelDiffHarness(torch.sin, X, config=loose, comparison_config=loose)


def test_explicit_casts_do_not_blunt_the_float64_run() -> None:
    def cast(x: torch.Tensor) -> torch.Tensor:
        return (x.half().float() * 3).bfloat16().float().exp()

    many = torch.linspace(-2, 2, 4096)
    report = compared(cast, many)
    assert report.verdict == "pass"
    assert report.anchored
    report = compared(cast, many, wrong.replacing("exp", "expm1"))
    assert report.verdict == "fail"
    assert report.tensor_results[0].judgement is not None


def test_python_numbers_are_compared() -> None:
    config = torch._dynamo.config.patch(capture_scalar_outputs=True)
    with config:
        off = wrong.changing(lambda o: [r + 1 if isinstance(r, torch.Tensor) else r for r in o])
        assert compared(lambda x: x.sum().item(), X, off).verdict == "fail"
        assert compared(lambda x: x.sum().item(), X).verdict == "pass"
